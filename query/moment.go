package query

import (
	"regexp"
	"strconv"
	"time"
)

var agePattern = regexp.MustCompile(`^([0-9]{1,6})([hdw])$`)

// Moment reads a time as people write it: a day, whose midnight in a zone is meant, a
// time in RFC 3339, or an age (12h, 7d, 2w) before now.
func Moment(text string, now time.Time, zone *time.Location) (time.Time, bool) {
	if m := agePattern.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		switch m[2] {
		case "h":
			return now.Add(-time.Duration(n) * time.Hour), true
		case "w":
			n *= 7
		}
		return now.AddDate(0, 0, -n), true
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return t, true
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}
