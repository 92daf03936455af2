package main

import (
	"regexp"
	"strconv"
	"time"
)

var agePattern = regexp.MustCompile(`^([0-9]{1,6})([hdw])$`)

// moment reads what --since and --until take: a day, whose midnight in a zone is meant,
// a time in RFC 3339, or an age.
func moment(flag, text string, now time.Time, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if m := agePattern.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		switch m[2] {
		case "h":
			return now.Add(-time.Duration(n) * time.Hour), nil
		case "w":
			n *= 7
		}
		return now.AddDate(0, 0, -n), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	return time.Time{}, usagef("--%s %q is no time: 2026-03-01, 2026-03-01T15:04:05Z, 7d and 12h are", flag, text)
}

// age returns how long ago something was, in few columns.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	n := func(unit time.Duration, name string) string { return strconv.FormatInt(int64(d/unit), 10) + name }
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return n(time.Minute, "m")
	case d < day:
		return n(time.Hour, "h")
	case d < 14*day:
		return n(day, "d")
	case d < 60*day:
		return n(7*day, "w")
	case d < 730*day:
		return n(30*day, "mo")
	}
	return n(365*day, "y")
}

// clock returns a time in the local zone, "" for none.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}
