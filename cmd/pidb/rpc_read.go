package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"pidb/query"
	"pidb/repo"
)

type noParams struct{}

// rpcVersionJSON is the result of pidb.version.
type rpcVersionJSON struct {
	versionJSON
	Protocol int      `json:"protocol"`
	Methods  []string `json:"methods"`
}

func (s *rpcServer) version(context.Context, *noParams) (any, error) {
	return rpcVersionJSON{thisVersion(), rpcProtocol, slices.Sorted(maps.Keys(s.methods))}, nil
}

// period reads since and until.
func (s *rpcServer) period(since, until string, location *time.Location) (from, to time.Time, err error) {
	now := time.Now()
	if from, err = moment("since", since, now, location); err == nil {
		to, err = moment("until", until, now, location)
	}
	return from, to, err
}

// rpcLimit returns the limit of a list and whether it is of all: none given means the
// default, 0 all.
func rpcLimit(limit *int) (n int, all bool, err error) {
	switch {
	case limit == nil:
		return 0, false, nil
	case *limit < 0:
		return 0, false, usagef("limit is a number, or 0 for all")
	}
	return *limit, *limit == 0, nil
}

type listParams struct {
	CWD      string `json:"cwd"`
	Since    string `json:"since"`
	Until    string `json:"until"`
	Name     string `json:"name"`
	Model    string `json:"model"`
	Sort     string `json:"sort"`
	Limit    *int   `json:"limit"`
	After    string `json:"after"`
	Archived bool   `json:"archived"`
}

// listJSON is the result of list.
type listJSON struct {
	Sessions []sessionJSON `json:"sessions"`
	Next     string        `json:"next,omitempty"`
}

func (s *rpcServer) list(ctx context.Context, p *listParams) (any, error) {
	opts := query.ListOptions{Name: p.Name, Model: p.Model, Sort: query.Sort(p.Sort), After: p.After, Archived: p.Archived}
	switch opts.Sort {
	case "", query.SortModified, query.SortCreated, query.SortSize, query.SortCost:
	default:
		return nil, usagef("sort is modified, created, size or cost, not %q", p.Sort)
	}
	var err error
	if opts.Limit, opts.All, err = rpcLimit(p.Limit); err != nil {
		return nil, err
	}
	if opts.Since, opts.Until, err = s.period(p.Since, p.Until, time.Local); err != nil {
		return nil, err
	}
	if opts.CWD, err = folder(p.CWD, false); err != nil {
		return nil, err
	}
	if err := s.sync(ctx, withoutIndex); err != nil {
		return nil, err
	}
	result := listJSON{Sessions: []sessionJSON{}}
	err = s.archive.View(ctx, func(rx *query.Rx) error {
		list, next, err := rx.List(ctx, &opts)
		for i := range list {
			result.Sessions = append(result.Sessions, newSessionJSON(&list[i]))
		}
		result.Next = next
		return err
	})
	return result, err
}

type searchParams struct {
	Query    string     `json:"query"`
	Mode     string     `json:"mode"`
	Roles    []string   `json:"roles"`
	Tools    []string   `json:"tools"`
	CWD      string     `json:"cwd"`
	Model    string     `json:"model"`
	Since    string     `json:"since"`
	Until    string     `json:"until"`
	Session  rpcSession `json:"session"`
	Limit    *int       `json:"limit"`
	Sort     string     `json:"sort"`
	Thinking bool       `json:"thinking"`
}

// searchJSON is the result of search.
type searchJSON struct {
	Hits    []hitJSON `json:"hits"`
	More    bool      `json:"more"`
	Ignored []string  `json:"ignored,omitempty"`
}

func (s *rpcServer) search(ctx context.Context, p *searchParams) (any, error) {
	opts := query.SearchOptions{Roles: p.Roles, Tools: p.Tools, Model: p.Model, Sort: query.SearchSort(p.Sort), Thinking: p.Thinking}
	switch p.Mode {
	case "", "words":
	case "regex":
		opts.Mode = query.Regexp
	case "substring":
		opts.Mode = query.Substring
	default:
		return nil, usagef("mode is words, regex or substring, not %q", p.Mode)
	}
	switch opts.Sort {
	case "", query.SortRelevance, query.SortRecent:
	default:
		return nil, usagef("sort is relevance or recent, not %q", p.Sort)
	}
	var err error
	if opts.Limit, opts.All, err = rpcLimit(p.Limit); err != nil {
		return nil, err
	}
	if opts.Since, opts.Until, err = s.period(p.Since, p.Until, time.Local); err != nil {
		return nil, err
	}
	if opts.CWD, err = folder(p.CWD, false); err != nil {
		return nil, err
	}
	if err := s.sync(ctx, withIndex); err != nil {
		return nil, err
	}
	result := searchJSON{Hits: []hitJSON{}}
	err = s.archive.View(ctx, func(rx *query.Rx) error {
		if p.Session != "" {
			session, err := s.find(ctx, rx, p.Session)
			if err != nil {
				return err
			}
			opts.Session = session.Key
		}
		found, err := rx.Search(ctx, p.Query, &opts)
		if err != nil {
			return err
		}
		for i := range found.Hits {
			result.Hits = append(result.Hits, newHitJSON(&found.Hits[i]))
		}
		result.More, result.Ignored = found.More, found.Ignored
		return nil
	})
	return result, err
}

type statsParams struct {
	By    string `json:"by"`
	TZ    string `json:"tz"`
	Since string `json:"since"`
	Until string `json:"until"`
}

// statsJSON is the result of stats.
type statsJSON struct {
	Stats []statJSON `json:"stats"`
}

func (s *rpcServer) stats(ctx context.Context, p *statsParams) (any, error) {
	opts := query.StatsOptions{By: query.ByDay, Location: time.Local}
	switch by := query.Grouping(p.By); by {
	case "":
	case query.ByDay, query.ByModel, query.ByCWD, query.BySession:
		opts.By = by
	default:
		return nil, usagef("by is day, model, cwd or session, not %q", p.By)
	}
	var err error
	if p.TZ != "" && p.TZ != "Local" {
		if opts.Location, err = time.LoadLocation(p.TZ); err != nil {
			return nil, usagef("tz %q is no time zone, as Europe/Berlin and UTC are", p.TZ)
		}
	}
	if opts.Since, opts.Until, err = s.period(p.Since, p.Until, opts.Location); err != nil {
		return nil, err
	}
	if err := s.sync(ctx, withoutIndex); err != nil {
		return nil, err
	}
	result := statsJSON{Stats: []statJSON{}}
	err = s.archive.View(ctx, func(rx *query.Rx) error {
		stats, err := rx.Stats(ctx, &opts)
		for i := range stats {
			result.Stats = append(result.Stats, newStatJSON(&stats[i]))
		}
		return err
	})
	return result, err
}

type entriesParams struct {
	Session rpcSession `json:"session"`
	Types   []string   `json:"types"`
	Leaf    string     `json:"leaf"`
	Raw     bool       `json:"raw"`
}

// entriesJSON is the result of entries.
type entriesJSON struct {
	Entries []rawEntryJSON `json:"entries"`
}

func (s *rpcServer) entries(ctx context.Context, p *entriesParams) (any, error) {
	result := entriesJSON{Entries: []rawEntryJSON{}}
	err := s.archive.View(ctx, func(rx *query.Rx) error {
		session, err := s.find(ctx, rx, p.Session)
		if err != nil {
			return err
		}
		opts := query.EntriesOptions{Types: p.Types}
		if p.Leaf != "" {
			if opts.Leaf, err = findLeaf(ctx, rx, &session, p.Leaf); err != nil {
				return err
			}
		}
		for e, err := range rx.Entries(ctx, session.Key, &opts) {
			if err != nil {
				return err
			}
			j, err := entryInJSON(ctx, rx, &e, p.Raw)
			if err != nil {
				return err
			}
			result.Entries = append(result.Entries, j)
		}
		return nil
	})
	return result, err
}

// rawEntryJSON is an entry with the bytes of its line.
type rawEntryJSON struct {
	entryJSON
	Raw       *string `json:"raw,omitempty"`
	RawBase64 string  `json:"rawBase64,omitempty"`
}

// entryInJSON returns an entry in JSON, with its bytes where raw says so.
func entryInJSON(ctx context.Context, rx *query.Rx, e *query.Entry, raw bool) (rawEntryJSON, error) {
	j := rawEntryJSON{entryJSON: newEntryJSON(e)}
	if !raw {
		return j, nil
	}
	line, err := rx.Raw(ctx, e.Ref)
	if err != nil {
		return j, err
	}
	if utf8.Valid(line) {
		j.Raw = new(string(line))
	} else {
		j.RawBase64 = base64.StdEncoding.EncodeToString(line)
	}
	return j, nil
}

type treeParams struct {
	Session rpcSession `json:"session"`
}

// treeJSON is the result of tree.
type treeJSON struct {
	Nodes []nodeJSON `json:"nodes"`
}

func (s *rpcServer) tree(ctx context.Context, p *treeParams) (any, error) {
	result := treeJSON{Nodes: []nodeJSON{}}
	err := s.archive.View(ctx, func(rx *query.Rx) error {
		session, err := s.find(ctx, rx, p.Session)
		if err != nil {
			return err
		}
		for node, err := range nodes(ctx, rx, &session) {
			if err != nil {
				return err
			}
			result.Nodes = append(result.Nodes, node)
		}
		return nil
	})
	return result, err
}

type targetsParams struct {
	Session rpcSession `json:"session"`
}

// targets lists the entries that branch takes with answered.
func (s *rpcServer) targets(ctx context.Context, p *targetsParams) (any, error) {
	result := entriesJSON{Entries: []rawEntryJSON{}}
	err := s.archive.View(ctx, func(rx *query.Rx) error {
		session, err := s.find(ctx, rx, p.Session)
		if err != nil {
			return err
		}
		targets, err := rx.Targets(ctx, session.Key)
		for i := range targets {
			result.Entries = append(result.Entries, rawEntryJSON{entryJSON: newEntryJSON(&targets[i])})
		}
		return err
	})
	return result, err
}

type contextParams struct {
	Session rpcSession `json:"session"`
	Leaf    string     `json:"leaf"`
	LLM     bool       `json:"llm"`
}

// context gives the context at an entry, else at the client's place in the session.
func (s *rpcServer) context(ctx context.Context, p *contextParams) (any, error) {
	l, err := s.place(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	var j *contextJSON
	err = s.archive.View(ctx, func(rx *query.Rx) error {
		leaf := l.session.Leaf()
		if p.Leaf != "" {
			if leaf, err = findLeaf(ctx, rx, &l.info, p.Leaf); err != nil {
				return err
			}
		}
		c, err := contextAt(ctx, rx, leaf, p.LLM)
		if err == nil {
			j, err = newContextJSON(ctx, rx, &l.info, leaf, c)
		}
		return err
	})
	return j, err
}

type exportParams struct {
	Session rpcSession `json:"session"`
	Form    string     `json:"form"`
	Leaf    string     `json:"leaf"`
	Output  string     `json:"output"`
}

// exportedJSON is the result of export: with the path of the file, or with what would be in it.
type exportedJSON struct {
	Session query.Key `json:"session"`
	Path    string    `json:"path,omitempty"`
	Bytes   int64     `json:"bytes"`
	Text    *string   `json:"text,omitempty"`
	Base64  string    `json:"base64,omitempty"`
}

func (s *rpcServer) export(ctx context.Context, p *exportParams) (any, error) {
	switch {
	case p.Form != "" && p.Form != "original" && p.Form != "normalized" && p.Form != "branch":
		return nil, usagef("form is original, normalized or branch, not %q", p.Form)
	case p.Leaf != "" && p.Form != "branch":
		return nil, usagef("leaf goes with the form branch")
	}
	l, err := s.place(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	result := exportedJSON{Session: l.info.Key}
	var text bytes.Buffer
	err = s.archive.View(ctx, func(rx *query.Rx) error {
		leaf := l.session.Leaf()
		if p.Leaf != "" {
			if leaf, err = findLeaf(ctx, rx, &l.info, p.Leaf); err != nil {
				return err
			}
		}
		write := func(w io.Writer) error { return s.app.writeForm(ctx, rx, &l.info, p.Form, leaf, w) }
		if p.Output == "" {
			return write(&text)
		}
		result.Bytes, err = createFile(p.Output, write)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, withHint(fmt.Errorf("%s: %w", p.Output, repo.ErrExists), "export never writes over a file")
	case err != nil:
		return nil, err
	case p.Output != "":
		result.Path, err = filepath.Abs(p.Output)
		return result, err
	}
	result.Bytes = int64(text.Len())
	if utf8.Valid(text.Bytes()) {
		result.Text = new(text.String())
	} else {
		result.Base64 = base64.StdEncoding.EncodeToString(text.Bytes())
	}
	return result, nil
}
