package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/creachadair/jrpc2"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

// rpcServer serves one client. What a client appends goes on from where it left off:
// handles holds its place in each session.
type rpcServer struct {
	app     *app
	archive *repo.Archive
	methods map[string]jrpc2.Handler
	server  *jrpc2.Server
	ending  context.Context // of waits: done when there is no more input
	end     context.CancelFunc
	before  <-chan struct{} // closed when all requests before the next one are done; of the server's one goroutine that assigns
	quiet   sync.WaitGroup  // of notifications

	mu      sync.Mutex
	handles map[query.Key]*repo.Session
	synced  time.Time
}

func newRPCServer(a *app, archive *repo.Archive) *rpcServer {
	s := &rpcServer{app: a, archive: archive, handles: map[query.Key]*repo.Session{}}
	done := make(chan struct{})
	close(done)
	s.before = done
	s.methods = map[string]jrpc2.Handler{
		"pidb.version": method(s.version),
		"create":       method(s.create), "open": method(s.open), "list": method(s.list), "search": method(s.search), "stats": method(s.stats),
		"entries": method(s.entries), "tree": method(s.tree), "targets": method(s.targets), "context": method(s.context), "export": method(s.export),
		"append": method(s.append), "branch": method(s.branch), "fork": method(s.fork), "extract": method(s.extract),
		"label": method(s.label), "name": method(s.name), "delete": method(s.delete),
		"wait": method(s.wait), "$/cancelRequest": method(s.cancel),
	}
	return s
}

// serve answers until the input ends and all that was asked is answered.
func (s *rpcServer) serve(ctx context.Context) error {
	s.ending, s.end = context.WithCancel(ctx)
	defer s.end()
	s.server = jrpc2.NewServer(s, &jrpc2.ServerOptions{
		DisableBuiltin: true,
		Concurrency:    1 << 30, // waits do not count: the order is that of Assign
		NewContext:     func() context.Context { return ctx },
	})
	s.server.Start(&rpcChannel{ctx: ctx, in: bufio.NewReaderSize(interruptible{ctx, s.app.stdin}, 64<<10), out: s.app.out, end: s.end})
	err := s.server.Wait()
	s.quiet.Wait()
	return err
}

// Assign returns what carries out a request: after all those before it. It is called for
// one request after the other, in the order of their lines.
func (s *rpcServer) Assign(ctx context.Context, name string) jrpc2.Handler {
	handle := s.methods[name]
	if handle == nil {
		// Of a method that it finds nothing for, the server would never take the id again.
		return func(context.Context, *jrpc2.Request) (any, error) {
			return nil, jrpc2.Errorf(jrpc2.MethodNotFound, "there is no method %q", name)
		}
	}
	if name == "$/cancelRequest" {
		return func(ctx context.Context, r *jrpc2.Request) (any, error) { return carryOut(ctx, r, handle) }
	}
	before, done := s.before, make(chan struct{})
	s.before = done
	leave := sync.OnceFunc(func() { close(done) })
	// One that was cancelled before its turn is never called.
	context.AfterFunc(ctx, func() { <-before; leave() })
	inTurn := func(ctx context.Context, r *jrpc2.Request) (any, error) {
		select {
		case <-before:
		case <-ctx.Done():
			return nil, rpcError(ctx.Err())
		}
		defer leave()
		return carryOut(ctx, r, func(ctx context.Context, r *jrpc2.Request) (any, error) {
			result, err := handle(ctx, r)
			wait, ok := result.(pending)
			if !ok || r.IsNotification() { // which has nobody to tell
				return result, err
			}
			leave()
			return wait()
		})
	}
	return func(ctx context.Context, r *jrpc2.Request) (any, error) {
		if !r.IsNotification() {
			return inTurn(ctx, r)
		}
		// The server takes no message before notifications are done, and one may be there to
		// cancel what this one waits for.
		s.quiet.Go(func() { _, _ = inTurn(ctx, r) })
		return nil, nil
	}
}

// pending is the result of a request that lets the next ones pass: what waits for it.
type pending func() (any, error)

func carryOut(ctx context.Context, r *jrpc2.Request, handle jrpc2.Handler) (any, error) {
	result, err := handle(ctx, r)
	if err != nil {
		return nil, rpcError(err)
	}
	return result, nil
}

// method makes a handler of what takes parameters of type P.
func method[P any](f func(ctx context.Context, p *P) (any, error)) jrpc2.Handler {
	return func(ctx context.Context, r *jrpc2.Request) (any, error) {
		p := new(P)
		if err := decodeParams(r, p); err != nil {
			return nil, err
		}
		return f(ctx, p)
	}
}

// decodeParams reads the parameters of a request, an object with no other members than p
// has, in the same case.
func decodeParams(r *jrpc2.Request, p any) error {
	if !r.HasParams() {
		return nil
	}
	var members map[string]json.RawMessage
	if err := r.UnmarshalParams(&members); err != nil {
		return usagef("params are an object")
	}
	var names []string
	for field := range reflect.TypeOf(p).Elem().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	for name := range members {
		if !slices.Contains(names, name) {
			return usagef("unknown parameter %q; there are %s", name, strings.Join(names, ", "))
		}
		if name != entriesParam && hasLoneSurrogate(members[name]) {
			return usagef("%s has half of a surrogate pair", name)
		}
	}
	if err := r.UnmarshalParams(p); err != nil {
		if wrong, ok := errors.AsType[*jrpc2.Error](err); ok {
			var text string
			if json.Unmarshal(wrong.Data, &text) == nil {
				return usagef("%s", strings.TrimPrefix(text, "json: "))
			}
		}
		return usagef("%v", err)
	}
	return nil
}

// entriesParam is the parameter that keeps lone surrogates as their escapes.
const entriesParam = "entries"

var surrogate = regexp.MustCompile(`\\(?:u(?i:(d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|(d[89a-f][0-9a-f]{2}))|.)`)

// hasLoneSurrogate reports whether a string in a JSON text has half of a surrogate pair,
// which Go cannot hold.
func hasLoneSurrogate(text []byte) bool {
	if !bytes.Contains(text, []byte(`\u`)) {
		return false
	}
	for _, m := range surrogate.FindAllSubmatch(text, -1) {
		if m[2] != nil {
			return true
		}
	}
	return false
}

// rpcFailed is the code of errors that have a name.
const rpcFailed jrpc2.Code = -32000

// rpcErrorJSON is what an error has as data.
type rpcErrorJSON struct {
	Name       string        `json:"name"`
	Hint       string        `json:"hint,omitempty"`
	Candidates []sessionJSON `json:"candidates,omitempty"`
	Call       string        `json:"call,omitempty"`
}

// sentinels are the names of errors, of two that an error wraps the more telling one first.
var sentinels = []struct {
	name string
	err  error
}{
	{"ErrUnanswered", repo.ErrUnanswered},
	{"ErrAmbiguous", query.ErrAmbiguous},
	{"ErrBadPattern", query.ErrBadPattern},
	{"ErrBadCursor", query.ErrBadCursor},
	{"ErrInvalidTree", repo.ErrInvalidTree},
	{"ErrInvalidID", repo.ErrInvalidID},
	{"ErrInvalidEntry", repo.ErrInvalidEntry},
	{"ErrConflict", repo.ErrConflict},
	{"ErrNotNative", repo.ErrNotNative},
	{"ErrExists", repo.ErrExists},
	{"ErrNoSource", repo.ErrNoSource},
	{"ErrTooLarge", repo.ErrTooLarge},
	{"ErrNoLimit", repo.ErrNoLimit},
	{"ErrBusy", repo.ErrBusy},
	{"ErrFull", repo.ErrFull},
	{"ErrReadOnly", repo.ErrReadOnly},
	{"ErrNewer", repo.ErrNewer},
	{"ErrForeign", repo.ErrForeign},
	{"ErrIndexDamaged", repo.ErrIndexDamaged},
	{"ErrDamaged", repo.ErrDamaged},
	{"ErrUnsupportedFormat", jsonl.ErrUnsupportedFormat},
	{"ErrNotFound", repo.ErrNotFound},
}

// rpcError returns an error as a client sees it.
func rpcError(err error) error {
	if own, ok := errors.AsType[*jrpc2.Error](err); ok {
		return own
	}
	switch {
	case errors.Is(err, context.Canceled):
		return jrpc2.Errorf(jrpc2.Cancelled, "the request was cancelled")
	case exitCode(err) == exitUsage && !errors.Is(err, query.ErrBadPattern) && !errors.Is(err, query.ErrBadCursor) && !errors.Is(err, repo.ErrInvalidID):
		return jrpc2.Errorf(jrpc2.InvalidParams, "%s", err.Error())
	}
	for _, sentinel := range sentinels {
		if !errors.Is(err, sentinel.err) {
			continue
		}
		data := rpcErrorJSON{Name: sentinel.name, Hint: hintFor(err)}
		if ambiguous, ok := errors.AsType[*query.AmbiguousError](err); ok {
			for i := range ambiguous.Candidates {
				data.Candidates = append(data.Candidates, newSessionJSON(&ambiguous.Candidates[i]))
			}
		}
		if unanswered, ok := errors.AsType[*query.UnansweredError](err); ok {
			data.Call = unanswered.CallID
		}
		return jrpc2.Errorf(rpcFailed, "%s", message(err)).WithData(data)
	}
	return jrpc2.Errorf(jrpc2.InternalError, "%s", err.Error())
}

// rpcChannel reads and writes messages, each on a line of its own.
type rpcChannel struct {
	ctx  context.Context // of the command: when it ends, a write that nobody reads is given up
	in   *bufio.Reader
	out  *output
	owed sync.WaitGroup // messages that get an answer
	end  func()         // no more will come
}

// Recv returns the next message. At the end of the input it waits until all is answered:
// the server drops what is under way when it hears of the end.
func (c *rpcChannel) Recv() ([]byte, error) {
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if !utf8.Valid(line) {
				line = []byte("invalid UTF-8") // which is no JSON either
			}
			requests, err := jrpc2.ParseRequests(line)
			if err != nil || answered(requests) {
				c.owed.Add(1)
			}
			if slices.ContainsFunc(requests, malformed) {
				line = requestLike(line)
			}
			return line, nil
		}
		if err != nil {
			c.end()
			c.owed.Wait()
			return nil, err
		}
	}
}

// answered reports whether a message gets an answer: all but notifications do.
func answered(requests []*jrpc2.ParsedRequest) bool {
	return len(requests) == 0 || slices.ContainsFunc(requests, func(r *jrpc2.ParsedRequest) bool {
		return r.ID != "" || r.Error != nil || r.Method == ""
	})
}

// malformed reports whether the server would call a request no JSON, though it is some.
func malformed(r *jrpc2.ParsedRequest) bool {
	return r.Error != nil && r.Error.Code == jrpc2.ParseError
}

// requestLike returns a message, which is JSON, with requests of the same ids that the
// server refuses as such in place of malformed ones.
func requestLike(message []byte) []byte {
	var batch []json.RawMessage
	single := json.Unmarshal(message, &batch) != nil
	if single {
		batch = []json.RawMessage{message}
	}
	for i, text := range batch {
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || members == nil {
			members = map[string]json.RawMessage{}
		}
		for _, name := range []string{"jsonrpc", "method"} {
			var word string
			if value, ok := members[name]; ok && json.Unmarshal(value, &word) != nil {
				delete(members, name)
			}
		}
		var wrong *jrpc2.Error
		if value, ok := members["error"]; ok && json.Unmarshal(value, &wrong) != nil {
			members["error"] = json.RawMessage(`{}`)
		}
		// Members that were JSON are so still.
		batch[i], _ = json.Marshal(members)
	}
	if single {
		return batch[0]
	}
	text, _ := json.Marshal(batch)
	return text
}

// sendGrace is how long a write may take when the command is to end.
const sendGrace = time.Second

// Send writes an answer. When the command is to end and nobody reads, it gives the output up.
func (c *rpcChannel) Send(message []byte) error {
	defer c.owed.Done()
	w := c.out.w
	done := make(chan error, 1)
	go func() {
		_, err := w.Write(append(message, '\n'))
		done <- cmp.Or(err, w.Flush())
	}()
	select {
	case err := <-done:
		c.out.check(err)
		return err
	case <-c.ctx.Done():
	}
	select {
	case err := <-done:
		c.out.check(err)
		return err
	case <-time.After(sendGrace):
		// The write goes on until the process ends, with what it holds.
		c.out.w = bufio.NewWriter(io.Discard)
		return c.ctx.Err()
	}
}

// Close leaves standard output open: who started the command closes it.
func (c *rpcChannel) Close() error { return nil }

// cancelParams are those of $/cancelRequest.
type cancelParams struct {
	ID json.RawMessage `json:"id"`
}

func (s *rpcServer) cancel(_ context.Context, p *cancelParams) (any, error) {
	s.server.CancelRequest(string(p.ID))
	return struct{}{}, nil
}

// rpcSession is SESSION as a parameter: a string as on the command line, or its key.
type rpcSession string

// UnmarshalJSON takes a string or a number.
func (s *rpcSession) UnmarshalJSON(text []byte) error {
	var key query.Key
	if json.Unmarshal(text, &key) == nil && string(text) != "null" {
		*s = rpcSession(fmt.Sprintf("#%d", key))
		return nil
	}
	var spec string
	if err := json.Unmarshal(text, &spec); err != nil {
		return errors.New("a session is named by a string, or by its key, a number")
	}
	*s = rpcSession(spec)
	return nil
}

// find returns the session that a parameter names.
func (s *rpcServer) find(ctx context.Context, rx *query.Rx, spec rpcSession) (query.Session, error) {
	if spec == "" {
		return query.Session{}, usagef("session is missing")
	}
	return findSession(ctx, rx, string(spec))
}

// place returns a session at this client's place in it: where the session's leaf is, for a
// client that has none yet.
func (s *rpcServer) place(ctx context.Context, spec rpcSession) (*live, error) {
	l := &live{archive: s.archive}
	err := s.archive.View(ctx, func(rx *query.Rx) (err error) {
		l.info, err = s.find(ctx, rx, spec)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.session = s.handles[l.info.Key]; l.session == nil {
		l.session, err = s.archive.Session(ctx, l.info.Key)
	}
	return l, err
}

// live is place, which is the client's own from then on.
func (s *rpcServer) live(ctx context.Context, spec rpcSession) (*live, error) {
	l, err := s.place(ctx, spec)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handles[l.info.Key] = l.session
	return l, nil
}

// keep remembers a session that was made.
func (s *rpcServer) keep(ctx context.Context, made *repo.Session) (any, error) {
	s.mu.Lock()
	s.handles[made.Key()] = made
	s.mu.Unlock()
	info, err := made.Info(ctx)
	if err != nil {
		return nil, err
	}
	return madeJSON{info.Key, info.ID, info.CWD, info.ParentSession, info.Entries}, nil
}

// syncPause is how long what was taken in is taken for all there is.
const syncPause = time.Second

// sync takes in what changed in the session folders, as commands do.
func (s *rpcServer) sync(ctx context.Context, index indexing) error {
	s.mu.Lock()
	fresh := time.Since(s.synced) < syncPause
	s.mu.Unlock()
	if fresh {
		if index == withIndex {
			return s.app.updateIndex(ctx, s.archive)
		}
		return nil
	}
	if err := s.app.sync(ctx, s.archive, index); err != nil {
		return err
	}
	s.mu.Lock()
	s.synced = time.Now()
	s.mu.Unlock()
	return nil
}
