package repo

// finish settles what lines that came late have changed: parents after their children,
// and with them cycles. After it no line may be added.
func (b *builder) finish() {
	if !b.forward {
		return
	}
	b.findCycles()
	b.unsettle()
	b.countTips()
	for i := range b.links {
		l, seq := &b.links[i], int64(i)
		if !l.entry {
			continue
		}
		if seq >= b.sent {
			b.rows[seq-b.sent].apply(l)
		} else {
			fix := row{seq: seq}
			fix.apply(l)
			b.fixes = append(b.fixes, fix)
		}
	}
}

func (r *row) apply(l *link) {
	r.parent, r.loop, r.top = l.parent, l.loop, l.top
	r.depth, r.compaction, r.kept, r.setting = l.depth, l.compaction, l.kept, l.setting
	if l.parent != none {
		r.orphan = nil
	}
}

// findCycles sets loop on the rows of every cycle of parents, and makes the earliest
// row of each a root of the tree.
func (b *builder) findCycles() {
	for i := range b.links {
		b.links[i].top = b.links[i].entry && b.links[i].parent == none
	}
	walk := make([]int, len(b.links)) // the walk that came by first, from 1
	for i := range b.links {
		seq := int64(i)
		for seq != none && walk[seq] == 0 {
			walk[seq] = i + 1
			seq = b.links[seq].parent
		}
		if seq == none || walk[seq] != i+1 {
			continue
		}
		var length int64
		earliest := seq
		for at := seq; length == 0 || at != seq; at = b.links[at].parent {
			length++
			earliest = min(earliest, at)
		}
		b.links[earliest].top = true
		for range length {
			b.links[seq].loop = length
			seq = b.links[seq].parent
		}
	}
}

// unsettle forgets what the path gave to rows that have a parent after its child on it.
func (b *builder) unsettle() {
	for i := range b.links {
		l := &b.links[i]
		if l.parent > int64(i) || l.parent != none && b.links[l.parent].depth == none {
			l.depth, l.compaction, l.kept, l.setting = none, none, none, setting{}
		}
	}
}

func (b *builder) countTips() {
	for i := range b.links {
		b.links[i].parented = false
	}
	for i := range b.links {
		if parent := b.links[i].parent; parent != none {
			b.links[parent].parented = true
		}
	}
	b.sum.tips = 0
	for i := range b.links {
		if b.links[i].entry && !b.links[i].parented {
			b.sum.tips++
		}
	}
}
