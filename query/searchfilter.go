package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pidb/query/fulltext"
)

// searchFilters are what a search asks of sessions and entries beside their text.
type searchFilters struct {
	chosen   bool         // only the sessions in keys are searched
	keys     map[Key]bool // of the fields of a query
	list     string       // keys as JSON
	old      map[Key]bool // superseded sessions, where nothing else says which are searched
	types    []string     // of which one has to fit
	notTags  []string
	models   []string // of which each has to fit
	notModel []string
	errors   bool // only entries that tell of an error
}

// means reports whether a field of a query is one: whether its value can be of such a kind.
func (s *search) means(f field) bool {
	switch f.name {
	case "role":
		_, ok := oneOf(knownRoles, f.value)
		return ok
	case "type":
		_, ok := oneOf(knownTypes, f.value)
		return ok
	case "is":
		return f.value == "error"
	case "before", "until", "after", "since":
		_, ok := s.moment(f.value)
		return ok && !f.not
	}
	return true
}

// moment reads the time of a field.
func (s *search) moment(text string) (time.Time, bool) {
	now, zone := s.opts.Now, cmp.Or(s.opts.Zone, time.UTC)
	if now.IsZero() {
		now = time.Now()
	}
	return Moment(text, now, zone)
}

// filter takes the fields of a query beside the options of the search, and prepares what
// is asked of sessions.
func (s *search) filter(ctx context.Context, fields []field) error {
	f := &s.filters
	f.types, f.errors = slices.Clone(s.opts.Types), s.opts.Errors
	if s.opts.Model != "" {
		f.models = []string{s.opts.Model}
	}
	if s.opts.Name != "" {
		fields = append(slices.Clone(fields), field{name: "name", value: s.opts.Name})
	}
	for _, field := range fields {
		switch field.name {
		case "role":
			role, _ := oneOf(knownRoles, field.value)
			switch {
			case !field.not:
				s.opts.Roles = append(slices.Clone(s.opts.Roles), role)
			case role == "tool":
				f.notTags = append(f.notTags, RoleTag("toolResult"))
			default:
				f.notTags = append(f.notTags, roleTags(role)...)
			}
		case "tool":
			if field.not {
				f.notTags = append(f.notTags, ToolTag(field.value))
			} else {
				s.opts.Tools = append(slices.Clone(s.opts.Tools), field.value)
			}
		case "type":
			name, _ := oneOf(knownTypes, field.value)
			if field.not {
				f.notTags = append(f.notTags, TypeTag(name))
			} else {
				f.types = append(f.types, name)
			}
		case "is":
			if field.not {
				f.notTags = append(f.notTags, ErrorTag)
			} else {
				f.errors = true
			}
		case "model":
			if field.not {
				f.notModel = append(f.notModel, field.value)
			} else {
				f.models = append(f.models, field.value)
			}
		case "before", "until":
			if t, ok := s.moment(field.value); ok && (s.opts.Until.IsZero() || t.Before(s.opts.Until)) {
				s.opts.Until = t
			}
		case "after", "since":
			if t, ok := s.moment(field.value); ok && t.After(s.opts.Since) {
				s.opts.Since = t
			}
		case "cwd", "name", "session":
			if err := s.choose(ctx, field); err != nil {
				return err
			}
		}
	}
	if !f.chosen && s.opts.Session == 0 && s.opts.CWD == "" {
		f.old = map[Key]bool{}
		var keys []Key
		if err := s.rx.tx.SelectContext(ctx, &keys, `SELECT key FROM session WHERE state = 'superseded'`); err != nil {
			return err
		}
		for _, key := range keys {
			f.old[key] = true
		}
		return nil
	}
	where := s.sessionFilter()
	var keys []Key
	if err := s.rx.tx.SelectContext(ctx, &keys, `SELECT s.key FROM session s WHERE TRUE`+where.and(), where.args...); err != nil {
		return err
	}
	f.chosen, f.keys = true, map[Key]bool{}
	for _, key := range keys {
		f.keys[key] = true
	}
	return nil
}

// choose narrows the sessions to those that a field asks for.
func (s *search) choose(ctx context.Context, field field) error {
	keys, err := s.sessionsOf(ctx, field)
	if err != nil {
		return err
	}
	f := &s.filters
	if f.chosen {
		for key := range keys {
			if !f.keys[key] {
				delete(keys, key)
			}
		}
	}
	f.chosen, f.keys = true, keys
	list := make([]Key, 0, len(keys))
	for key := range keys {
		list = append(list, key)
	}
	slices.Sort(list)
	text, err := json.Marshal(list)
	f.list = string(text)
	return err
}

// sessionsOf returns the sessions that a field asks for.
func (s *search) sessionsOf(ctx context.Context, field field) (map[Key]bool, error) {
	keys := map[Key]bool{}
	if field.name == "session" && !field.not {
		found, err := s.rx.Find(ctx, field.value)
		_, ambiguous := errors.AsType[*AmbiguousError](err)
		switch {
		case ambiguous: // Of these the error names only some.
		case errors.Is(err, ErrNotFound):
			return keys, nil
		default:
			keys[found.Key] = true
			return keys, err
		}
	}
	folder := field.value
	if rest, ok := strings.CutPrefix(folder, "~"); ok && s.opts.Home != "" && (rest == "" || rest[0] == '/') {
		folder = s.opts.Home + rest
	}
	fits := func(id, cwd, name string) bool {
		switch field.name {
		case "session":
			return strings.HasPrefix(id, field.value)
		case "name":
			return strings.Contains(strings.ToLower(name), strings.ToLower(field.value))
		}
		return inFolder(cwd, folder)
	}
	err := each(ctx, s.rx, func(row *struct {
		Key  Key    `db:"key"`
		ID   string `db:"id"`
		CWD  string `db:"cwd"`
		Name string `db:"name"`
	},
	) error {
		if fits(row.ID, row.CWD, row.Name) != field.not {
			keys[row.Key] = true
		}
		return nil
	}, `SELECT key, id, coalesce(cwd, '') AS cwd, coalesce(name, '') AS name FROM session WHERE state <> 'superseded' OR key = ?`, s.opts.Session)
	return keys, err
}

// inFolder reports whether a folder is the one that a query names or below it. A name
// without a separator stands for any folder of that name.
func inFolder(cwd, asked string) bool {
	slash := func(path string) string { return strings.TrimSuffix(strings.ReplaceAll(path, `\`, "/"), "/") }
	absolute := filepath.IsAbs(asked)
	cwd, asked = slash(cwd), slash(asked)
	if absolute || strings.Contains(asked, ":") {
		return cwd == asked || strings.HasPrefix(cwd, asked+"/")
	}
	asked = strings.TrimPrefix(strings.TrimPrefix(asked, "~"), "/")
	return strings.Contains(strings.ToLower(cwd)+"/", "/"+strings.ToLower(asked)+"/")
}

// sessionFilter asks for the sessions s to be searched.
func (s *search) sessionFilter() *filter {
	f := &filter{}
	if s.opts.Session != 0 {
		f.add(`s.key = ?`, s.opts.Session)
	}
	if s.filters.list != "" {
		f.add(`s.key IN (SELECT value FROM json_each(?))`, s.filters.list)
	}
	if len(f.clauses) == 0 {
		f.add(`s.state <> 'superseded'`)
	}
	f.folder(s.opts.CWD)
	return f
}

// accepts reports whether a session is searched.
func (s *search) accepts(session int64) bool {
	if s.filters.chosen {
		return s.filters.keys[Key(session)]
	}
	return !s.filters.old[Key(session)]
}

// indexQuery returns what the index is asked beside words.
func (s *search) indexQuery() *fulltext.Query {
	q := &fulltext.Query{Fields: fulltext.InTalk | fulltext.InTool, Accept: s.accepts, NotTags: s.filters.notTags, Recent: s.opts.Sort == SortRecent}
	if s.opts.Thinking {
		q.Fields |= fulltext.InThinking
	}
	if s.onlyTools() {
		q.Fields = fulltext.InTool
	}
	if !s.opts.Since.IsZero() {
		q.Since = ceilMilli(s.opts.Since)
	}
	if !s.opts.Until.IsZero() {
		q.Until = ceilMilli(s.opts.Until)
	}
	q.Modified = s.modified
	var tags []string
	for _, role := range s.opts.Roles {
		tags = append(tags, roleTags(role)...)
	}
	q.AddTags(tags)
	tags = nil
	for _, tool := range s.opts.Tools {
		tags = append(tags, ToolTag(tool))
	}
	q.AddTags(tags)
	tags = nil
	for _, entryType := range s.filters.types {
		tags = append(tags, TypeTag(entryType))
	}
	q.AddTags(tags)
	if s.filters.errors {
		q.AddTags([]string{ErrorTag})
	}
	return q
}

// modified returns the time of the last activity in a session.
func (s *search) modified(session int64) int64 {
	var ms int64
	// A session that is gone has no hits either.
	_ = s.rx.tx.Get(&ms, `SELECT modified_ms FROM session WHERE key = ?`, session)
	return ms
}

// entryMS is the time of an entry e in a session s.
const entryMS = `coalesce(e.ms, s.modified_ms)`

// modelOf is the model that was chosen at an entry e in a session s, in lower case.
const modelOf = `lower(coalesce((
	SELECT coalesce(provider || '/', '') || coalesce(model, '') FROM setting WHERE key = e.setting AND has_model = 1
), s.model, ''))`

// entryFilter asks for what the index does not know of the entries e, in sessions s, to
// be searched.
func (s *search) entryFilter() *filter {
	f := &filter{}
	for _, model := range s.filters.models {
		f.add(`instr(`+modelOf+`, ?) > 0`, asciiLower(model))
	}
	for _, model := range s.filters.notModel {
		f.add(`instr(`+modelOf+`, ?) = 0`, asciiLower(model))
	}
	if !s.opts.Since.IsZero() {
		f.add(entryMS+` >= ?`, ceilMilli(s.opts.Since))
	}
	if !s.opts.Until.IsZero() {
		f.add(entryMS+` < ?`, ceilMilli(s.opts.Until))
	}
	return f
}

// tagFilter asks for the same of entries e as the tags of [search.indexQuery].
func (s *search) tagFilter() *filter {
	f := &filter{}
	var roles []string
	for _, role := range s.opts.Roles {
		clause, ok := roleClauses[role]
		if !ok {
			clause = `e.role = ?`
			f.args = append(f.args, role)
		}
		roles = append(roles, clause)
	}
	if len(roles) > 0 {
		f.add(`(` + strings.Join(roles, ` OR `) + `)`)
	}
	if len(s.filters.types) > 0 {
		types := &filter{}
		for _, entryType := range s.filters.types {
			types.add(`e.type = ?`, entryType)
		}
		f.add(`(`+strings.Join(types.clauses, ` OR `)+`)`, types.args...)
	}
	if s.filters.errors {
		// What they tell is seen in the line.
		f.add(`e.role IN ('toolResult', 'assistant', 'bashExecution')`)
	}
	if len(s.opts.Tools) > 0 {
		// Names beyond ASCII are compared in Go, as are those of calls.
		f.add(`e.role IN ('toolResult', 'assistant')`)
	}
	return f
}

// roleClauses say which entries have a role that is asked for by a name of its own.
var roleClauses = map[string]string{
	"tool":    `e.role IN ('toolResult', 'assistant')`,
	"bash":    `e.role = 'bashExecution'`,
	"custom":  `(e.role = 'custom' OR e.type = 'custom_message')`,
	"summary": `(e.type IN ('compaction', 'branch_summary') OR e.role IN ('compactionSummary', 'branchSummary'))`,
	"label":   `e.type = 'label'`,
	"name":    `e.type = 'session_info'`,
}
