package main

import (
	"strconv"
	"time"

	"pidb/query"
)

// moment reads what a flag for a time takes.
func moment(flag, text string, now time.Time, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, ok := query.Moment(text, now, zone)
	if !ok {
		return t, usagef("--%s %q is no time: 2026-03-01, 2026-03-01T15:04:05Z, 7d and 12h are", flag, text)
	}
	return t, nil
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
