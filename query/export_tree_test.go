package query

// Statement is a statement that production runs, and how many parameters it has.
type Statement struct {
	SQL        string
	Parameters int
	Scans      []string // aliases of the tables that it reads all of: it asks about the whole archive
}

// Statements are the statements about trees and contexts, by name.
var Statements = map[string]Statement{
	"entry":           {SQL: sqlEntry, Parameters: 1},
	"entry by id":     {SQL: sqlEntryByID, Parameters: 3},
	"entry at":        {SQL: sqlEntryAt, Parameters: 3},
	"entries":         {SQL: sqlEntries, Parameters: 2},
	"entries of":      {SQL: sqlEntriesOf, Parameters: 3},
	"entries of type": {SQL: sqlEntriesOfType, Parameters: 3},
	"place":           {SQL: sqlPlace, Parameters: 1},
	"branch":          {SQL: sqlBranch, Parameters: 1},
	"path":            {SQL: sqlPath, Parameters: 1},
	"parent":          {SQL: sqlParent, Parameters: 1},
	"context":         {SQL: sqlContext, Parameters: 3},
	"setting":         {SQL: sqlSetting, Parameters: 1},
	"labels":          {SQL: sqlLabels, Parameters: 2},
	"name":            {SQL: sqlName, Parameters: 2},
	"children":        {SQL: sqlChildren, Parameters: 1},
	"tips":            {SQL: sqlTips, Parameters: 2},
	"tree":            {SQL: sqlTree, Parameters: 3},
	"odd siblings":    {SQL: sqlOddSiblings, Parameters: 2},
	"form":            {SQL: sqlForm, Parameters: 3},
	"end":             {SQL: sqlEnd, Parameters: 1},
	"stats":           {SQL: sqlStats, Parameters: 2, Scans: []string{"u"}},
	"stats sessions":  {SQL: sqlStatsSessions, Parameters: 2, Scans: []string{"session"}},
}

// SortTimes sorts places by time as the children of an entry are sorted, nil being none,
// and returns their order.
func SortTimes(times []*int64) []int {
	family := make([]sibling, len(times))
	for i, ms := range times {
		family[i] = sibling{Ref: Ref(i), MS: ms}
	}
	sortSiblings(family)
	order := make([]int, len(times))
	for i, s := range family {
		order[i] = int(s.Ref)
	}
	return order
}
