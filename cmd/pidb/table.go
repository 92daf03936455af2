package main

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/mattn/go-runewidth"
)

// grid is a table with plain columns, the last of which takes the room that is left.
type grid struct {
	app     *app
	heads   []string
	right   []bool // columns with numbers
	rows    [][]string
	footers int // rows at the end that are sums
}

// print writes the table. In the cells is printable text; styles are by column.
func (g *grid) print(styles ...style) {
	last := len(g.heads) - 1
	room := g.app.term.width
	for i := range last {
		width := runewidth.StringWidth(g.heads[i])
		for _, row := range g.rows {
			width = max(width, runewidth.StringWidth(row[i]))
		}
		room -= width + 2
	}
	t := table.NewWriter()
	t.SuppressTrailingSpaces()
	t.SetStyle(table.Style{
		Box:     table.BoxStyle{PaddingRight: "  "},
		Format:  table.FormatOptions{Header: text.FormatDefault, Footer: text.FormatDefault, Row: text.FormatDefault},
		Options: table.OptionsNoBordersAndSeparators,
	})
	var configs []table.ColumnConfig
	head := table.Row{}
	for i, name := range g.heads {
		head = append(head, g.app.paint(styleDim, name))
		config := table.ColumnConfig{Number: i + 1}
		if g.right[i] {
			config.Align, config.AlignHeader = text.AlignRight, text.AlignRight
		}
		configs = append(configs, config)
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(head)
	for n, row := range g.rows {
		cells := table.Row{}
		for i, cell := range row {
			if i == last && g.app.term.out && g.app.term.width > 0 && !g.right[i] {
				cell = cut(cell, max(room, 16))
			}
			s := stylePlain
			if n >= len(g.rows)-g.footers {
				s = styleTitle
			} else if i < len(styles) {
				s = styles[i]
			}
			cells = append(cells, g.app.paint(s, cell))
		}
		t.AppendRow(cells)
	}
	g.app.out.printf("%s\n", strings.TrimRight(t.Render(), "\n"))
}
