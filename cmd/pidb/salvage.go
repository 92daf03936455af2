package main

import (
	"context"
	"errors"
	"strings"

	"pidb/repo"
)

// salvage brings what is left of the archive into a new one.
func (a *app) salvage(ctx context.Context, newPath string) error {
	path, _, err := a.dbPath()
	if err != nil {
		return err
	}
	bar := a.newBar()
	result, err := repo.Salvage(ctx, path, newPath, &repo.SalvageOptions{Progress: bar.count("saving")})
	bar.end()
	if _, ok := errors.AsType[*repo.DatabaseNameError](err); ok {
		return withHint(err, "name another NEW, which belongs to no database")
	}
	if errors.Is(err, repo.ErrExists) {
		return withHint(err, "--salvage takes a file that does not exist")
	}
	if err != nil {
		return err
	}
	if result.Newer > 0 {
		a.say("the archive has schema %d, that of a newer pidb: what only the newer one keeps is not brought out", result.Newer)
		a.say("hint: update pidb and salvage it again; the damaged archive stays as it is")
	}
	if err := a.printSalvage(result); err != nil {
		return err
	}
	if result.Partial+result.Lost > 0 {
		return exitWith(exitPartly)
	}
	return nil
}

func (a *app) printSalvage(r *repo.SalvageResult) error {
	if a.json {
		j := salvageJSON{
			Path: r.Path, Sessions: r.Sessions, Intact: r.Intact, Partial: r.Partial, Lost: r.Lost, Bytes: r.Bytes, Newer: r.Newer,
			Seconds: seconds(r.Duration), Damaged: []salvageDamageJSON{},
		}
		for _, d := range r.Damaged {
			out := salvageDamageJSON{Session: d.Session, ID: d.ID, Path: d.Path, Saved: d.Saved, Detail: d.Detail, Lost: []lostJSON{}}
			for _, l := range d.Lost {
				lost := lostJSON{From: l.From, FirstLine: l.FirstLine, LastLine: l.LastLine}
				if l.To >= 0 {
					lost.To = &l.To
				}
				out.Lost = append(out.Lost, lost)
			}
			j.Damaged = append(j.Damaged, out)
		}
		return a.emit(j)
	}
	for _, d := range r.Damaged {
		var parts []string
		for _, l := range d.Lost {
			parts = append(parts, l.String())
		}
		if d.Detail != "" {
			parts = append(parts, d.Detail)
		}
		place := d.Path
		if place == "" {
			place = d.ID
		}
		saved := "nothing could be saved"
		if d.Saved != 0 {
			saved = "saved as " + quotedKey(d.Saved)
		}
		a.say("%s %s: %s; %s", quotedKey(d.Session), place, strings.Join(parts, "; "), saved)
	}
	if !a.quiet {
		a.out.printf("%s: %s: %d intact, %d in part, %d lost; %s in %.1f s\n", a.displayPath(r.Path), count(r.Sessions, "session", "sessions"),
			r.Intact, r.Partial, r.Lost, bytesText(r.Bytes), r.Duration.Seconds())
	}
	return nil
}
