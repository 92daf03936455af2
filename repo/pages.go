package repo

import (
	"encoding/binary"
	"io"
	"maps"
	"math"
	"os"
)

// pageFile reads the pages of a SQLite database without SQLite, from a file that may be
// damaged anywhere, and from the committed frames of its write-ahead log. What is not
// there reads as zeros. See https://www.sqlite.org/fileformat2.html.
type pageFile struct {
	file   io.ReaderAt
	wal    io.ReaderAt
	frames map[uint32]int64 // offset in the log of the newest content of a page
	size   int              // of a page
	usable int              // of it, bytes that hold content
	count  uint32           // pages
	chain  map[uint32]bool  // pages that hold the rest of a payload
}

// Kinds of pages.
const (
	interiorIndex = 0x02
	interiorTable = 0x05
	leafIndex     = 0x0a
	leafTable     = 0x0d
)

// maxPages is more pages than a database can have that this package makes sense of.
const maxPages = math.MaxInt32

// openPages makes a pageFile of an open database and its log, which may be nil.
func openPages(file, wal *os.File) (*pageFile, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	p := &pageFile{file: file, frames: map[uint32]int64{}, chain: map[uint32]bool{}}
	header := make([]byte, 100)
	if _, err := file.ReadAt(header, 0); err != nil && err != io.EOF {
		return nil, err
	}
	p.size = pageSizeOf(binary.BigEndian.Uint16(header[16:]))
	p.usable = p.size
	if reserved := int(header[20]); reserved <= 64 {
		p.usable -= reserved
	}
	end := uint32(0)
	if wal != nil {
		p.wal = wal
		if end, err = p.readLog(wal); err != nil {
			return nil, err
		}
	}
	p.count = max(uint32(min((info.Size()+int64(p.size)-1)/int64(p.size), maxPages)), min(end, maxPages))
	return p, nil
}

// pageSizeOf returns the size of pages that a header gives, and that of new archives where
// it makes no sense.
func pageSizeOf(field uint16) int {
	if field == 1 {
		return 1 << 16
	}
	if field < 512 || field&(field-1) != 0 {
		return 8192
	}
	return int(field)
}

// readLog finds the committed frames of a write-ahead log and returns the number of pages
// that the database has with them.
func (p *pageFile) readLog(wal *os.File) (uint32, error) {
	header := make([]byte, 32)
	if n, err := wal.ReadAt(header, 0); err != nil && err != io.EOF || n < len(header) {
		return 0, ignoreEOF(err)
	}
	magic := binary.BigEndian.Uint32(header)
	size := binary.BigEndian.Uint32(header[8:])
	if magic&^1 != 0x377f0682 || size != uint32(p.size) {
		return 0, nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 != 0 {
		order = binary.BigEndian
	}
	var sum [2]uint32
	add := func(b []byte) {
		for ; len(b) >= 8; b = b[8:] {
			sum[0] += order.Uint32(b) + sum[1]
			sum[1] += order.Uint32(b[4:]) + sum[0]
		}
	}
	same := func(b []byte) bool {
		return binary.BigEndian.Uint32(b) == sum[0] && binary.BigEndian.Uint32(b[4:]) == sum[1]
	}
	if add(header[:24]); !same(header[24:]) {
		return 0, nil
	}
	frame := make([]byte, 24+p.size)
	open := map[uint32]int64{}
	end := uint32(0)
	for at := int64(len(header)); ; at += int64(len(frame)) {
		if n, err := wal.ReadAt(frame, at); n < len(frame) {
			return end, ignoreEOF(err)
		}
		if string(frame[8:16]) != string(header[16:24]) {
			return end, nil
		}
		add(frame[:8])
		if add(frame[24:]); !same(frame[16:]) {
			return end, nil
		}
		open[binary.BigEndian.Uint32(frame)] = at + 24
		if pages := binary.BigEndian.Uint32(frame[4:]); pages != 0 {
			maps.Copy(p.frames, open)
			clear(open)
			end = pages
		}
	}
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// page returns a page, from 1. Only an error of the system is one.
func (p *pageFile) page(number uint32) ([]byte, error) {
	data := make([]byte, p.size)
	if offset, ok := p.frames[number]; ok {
		_, err := p.wal.ReadAt(data, offset)
		return data, ignoreEOF(err)
	}
	_, err := p.file.ReadAt(data, int64(number-1)*int64(p.size))
	return data, ignoreEOF(err)
}

// node is a page of a b-tree.
type node struct {
	number uint32
	kind   byte
	data   []byte
	cells  []int // offsets
	right  uint32
}

// node returns a page as one of a b-tree, nil where it is none.
func (p *pageFile) node(number uint32) (*node, error) {
	data, err := p.page(number)
	if err != nil {
		return nil, err
	}
	start := 0
	if number == 1 {
		start = 100
	}
	n := &node{number: number, kind: data[start], data: data}
	list := start + 8
	switch n.kind {
	case leafTable, leafIndex:
	case interiorTable, interiorIndex:
		n.right = binary.BigEndian.Uint32(data[start+8:])
		list += 4
	default:
		return nil, nil
	}
	for i := range int(binary.BigEndian.Uint16(data[start+3:])) {
		at := list + 2*i
		if at+2 > len(data) {
			break
		}
		if cell := int(binary.BigEndian.Uint16(data[at:])); cell >= list && cell < p.usable {
			n.cells = append(n.cells, cell)
		}
	}
	return n, nil
}

// children returns the pages below an interior one, as it has them.
func (n *node) children() []uint32 {
	if n.kind != interiorTable && n.kind != interiorIndex {
		return nil
	}
	var out []uint32
	for _, cell := range n.cells {
		if cell+4 <= len(n.data) {
			out = append(out, binary.BigEndian.Uint32(n.data[cell:]))
		}
	}
	return append(out, n.right)
}

// walk visits the nodes of a b-tree, each page of the file once.
func (p *pageFile) walk(root uint32, seen map[uint32]bool, visit func(*node) error) error {
	for stack := []uint32{root}; len(stack) > 0; {
		number := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if number == 0 || number > p.count || seen[number] {
			continue
		}
		seen[number] = true
		n, err := p.node(number)
		if err != nil {
			return err
		}
		if n == nil {
			continue
		}
		if err := visit(n); err != nil {
			return err
		}
		stack = append(stack, n.children()...)
	}
	return nil
}

// free returns the pages that the database lists as unused.
func (p *pageFile) free() (map[uint32]bool, error) {
	out := map[uint32]bool{}
	first, err := p.page(1)
	if err != nil {
		return nil, err
	}
	for trunk := binary.BigEndian.Uint32(first[32:]); trunk > 1 && trunk <= p.count && !out[trunk]; {
		data, err := p.page(trunk)
		if err != nil {
			return nil, err
		}
		out[trunk] = true
		for i := range int(min(binary.BigEndian.Uint32(data[4:]), uint32(p.usable/4-2))) {
			if leaf := binary.BigEndian.Uint32(data[8+4*i:]); leaf > 1 && leaf <= p.count {
				out[leaf] = true
			}
		}
		trunk = binary.BigEndian.Uint32(data)
	}
	return out, nil
}

// cell returns the rowid of a cell, 0 in an index, and its payload; ok is false for what
// cannot be one.
func (p *pageFile) cell(n *node, at int) (rowid int64, payload []byte, ok bool, err error) {
	data := n.data[:p.usable]
	if n.kind == interiorIndex {
		at += 4
	}
	size, at, ok := varint(data, at)
	if !ok || n.kind == interiorTable || size < 0 || size > int64(p.count)*int64(p.usable) {
		return 0, nil, false, nil
	}
	local := p.usable - 35
	if n.kind == leafTable {
		if rowid, at, ok = varint(data, at); !ok {
			return 0, nil, false, nil
		}
	} else {
		local = (p.usable-12)*64/255 - 23
	}
	if size <= int64(local) {
		if int64(at)+size > int64(len(data)) {
			return 0, nil, false, nil
		}
		return rowid, data[at : at+int(size)], true, nil
	}
	least := (p.usable-12)*32/255 - 23
	if rest := least + int((size-int64(least))%int64(p.usable-4)); rest <= local {
		local = rest
	} else {
		local = least
	}
	if at+local+4 > len(data) {
		return 0, nil, false, nil
	}
	payload = append(make([]byte, 0, min(size, 4<<20)), data[at:at+local]...)
	links := map[uint32]bool{}
	for next := binary.BigEndian.Uint32(data[at+local:]); int64(len(payload)) < size; {
		if next < 2 || next > p.count || links[next] {
			return 0, nil, false, nil
		}
		links[next] = true
		rest, err := p.page(next)
		if err != nil {
			return 0, nil, false, err
		}
		next = binary.BigEndian.Uint32(rest)
		payload = append(payload, rest[4:min(int64(p.usable), 4+size-int64(len(payload)))]...)
	}
	for page := range links {
		p.chain[page] = true
	}
	return rowid, payload, true, nil
}

// varint reads a variable-length integer and returns the offset behind it.
func varint(data []byte, at int) (int64, int, bool) {
	var v uint64
	for i := range 9 {
		if at >= len(data) || at < 0 {
			return 0, 0, false
		}
		b := data[at]
		at++
		if i == 8 {
			return int64(v<<8 | uint64(b)), at, true
		}
		v = v<<7 | uint64(b&0x7f)
		if b < 0x80 {
			break
		}
	}
	return int64(v), at, true
}

// record returns the columns of a payload: nil, int64, float64, string or []byte. ok is
// false for what cannot be a record.
func record(payload []byte) (columns []any, ok bool) {
	size, at, ok := varint(payload, 0)
	if !ok || size < int64(at) || size > int64(len(payload)) {
		return nil, false
	}
	body := payload[size:]
	for at < int(size) {
		var serial int64
		if serial, at, ok = varint(payload[:size], at); !ok || serial < 0 {
			return nil, false
		}
		width := int64(0)
		switch {
		case serial >= 12:
			width = (serial - 12) / 2
		case serial >= 10:
			return nil, false
		case serial < 8:
			width = [...]int64{0, 1, 2, 3, 4, 6, 8, 8}[serial]
		}
		if width > int64(len(body)) {
			return nil, false
		}
		columns = append(columns, column(serial, body[:width]))
		body = body[width:]
	}
	return columns, len(body) == 0
}

// column returns a value of a serial type.
func column(serial int64, data []byte) any {
	switch {
	case serial == 0:
		return nil
	case serial >= 12 && serial%2 == 0:
		return data
	case serial >= 12:
		return string(data)
	case serial >= 8:
		return serial - 8
	}
	var v uint64
	if data[0] >= 0x80 && serial != 7 {
		v = math.MaxUint64
	}
	for _, b := range data {
		v = v<<8 | uint64(b)
	}
	if serial == 7 {
		return math.Float64frombits(v)
	}
	return int64(v)
}
