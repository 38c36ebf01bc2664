import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Fault } from '../servers/serving.ts'
import { openTrial, rollKilled } from './chaos.ts'
import { espalier, readLines, scratch, start } from './cli.ts'

const trial = { seed: 11, tasks: 12, group: 4, latency: 15 }

async function undisturbed(): Promise<{ rows: string; generations: number }> {
  await using plain = await openTrial(trial)
  const { code, stderr } = await espalier(...plain.words)
  expect(code, stderr).toBe(0)
  return { rows: await plain.rows(), generations: plain.generations() }
}

const reference = await undisturbed()

describe('a run that is disturbed', () => {
  it('[P1][S1] killed again and again, it ends with the rows of an undisturbed run', async () => {
    await using killed = await openTrial(trial)
    const { kills } = await rollKilled(killed, { seed: 2, kills: 4, apart: 25 })
    expect(kills).toBe(4)
    expect(await killed.rows()).toBe(reference.rows)
    // Sampled again is only what was in flight, and the turns that were drawn just before the kill.
    expect(killed.generations()).toBeLessThanOrEqual(reference.generations + kills * 2 * 8)
    const again = await espalier('resume', killed.run)
    expect([again.code, again.stderr]).toEqual([
      0,
      `${killed.run} is finished; nothing is left to do\n`,
    ])
  })

  it('[S1] interrupted in order, it says so and goes on to the same rows', async () => {
    await using stopped = await openTrial(trial)
    const { child, finished } = start(stopped.words)
    await stopped.reached(30)
    child.kill('SIGINT')
    const { code, stderr } = await finished
    expect([code, stderr]).toEqual([130, expect.stringContaining('what is finished is kept')])
    const { status, reason } = JSON.parse(readFileSync(join(stopped.run, 'run.json'), 'utf8'))
    expect([status, reason]).toEqual(['stopped', 'interrupted'])
    expect((await espalier('resume', stopped.run)).code).toBe(0)
    expect(await stopped.rows()).toBe(reference.rows)
  })

  it('[P1] on a full disk it says so, keeps what is finished, and goes on when there is room', async () => {
    await using full = await openTrial(trial)
    const { code, stderr } = await start(full.words, { largestFile: 64 }).finished
    expect(code, stderr).toBe(1)
    expect(stderr).toContain('journal.frames cannot be written: the file-size limit is reached')
    expect(stderr).toContain(`espalier resume ${full.run}\` goes on from there`)
    const kept = (await espalier('show', full.run, '--json')).stdout.trim().split('\n').length
    expect(kept).toBeGreaterThan(1)
    expect((await espalier('resume', full.run)).code).toBe(0)
    expect(await full.rows()).toBe(reference.rows)
  })

  it('[P1] a cassette that cannot be written ends the run, which goes on when there is room', async () => {
    const cassette = join(scratch(), 'cassette.jsonl')
    await using full = await openTrial({ ...trial, words: ['--record', cassette] })
    const { code, stderr } = await start(full.words, { largestFile: 8 }).finished
    expect(code, stderr).toBe(1)
    expect(stderr).toContain('cassette.jsonl cannot be written: the file-size limit is reached')
    const shown = await espalier('show', full.run, '--json')
    expect(shown.stdout).not.toContain('"kind":"failed"')
    expect((await espalier('resume', full.run)).code).toBe(0)
    expect(await full.rows()).toBe(reference.rows)
    const lines = readFileSync(cassette, 'utf8').trim().split('\n')
    for (const line of lines) expect(() => JSON.parse(line)).not.toThrow()
  })

  it('[O1] with faults at every fifth answer it ends, every failure attributed', async () => {
    const kinds: readonly Fault[] = ['reset', 'unavailable', 'hang', 'truncated', 'nan', 'html']
    const fault = (index: number) => (index % 5 === 2 ? kinds[((index / 5) % 6) | 0] : undefined)
    await using faulty = await openTrial({ ...trial, fault, words: ['--deadline', '1'] })
    const { code, stderr } = await espalier(...faulty.words)
    expect(code, stderr).toBe(0)
    const rows = join(faulty.folder, 'all.jsonl')
    await espalier('export', faulty.run, '--to', 'jsonl', '--out', rows, '--include', 'failed')
    const { stdout } = await espalier('show', faulty.run, '--json')
    const groups = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    const failed = groups.flatMap(group => group.unscored)
    expect(groups.map(group => group.rewards.length + group.unscored.length)).toEqual(
      Array.from({ length: trial.tasks }, () => trial.group),
    )
    expect(failed.length).toBeGreaterThan(0)
    for (const { outcome } of failed)
      expect(outcome).toMatchObject({ kind: 'failed', boundary: 'policy' })
    const good = readLines(rows).filter(row => row.outcome.kind === 'completed')
    expect(good).toHaveLength(trial.tasks * trial.group - failed.length)
  })

  it('is read while it runs: show and export see what is finished', async () => {
    await using running = await openTrial(trial)
    const { finished } = start(running.words)
    await running.reached(60)
    const shown = await espalier('show', running.run, '--json')
    const rows = await running.rows()
    expect(shown.code, shown.stderr).toBe(0)
    const second = await espalier('resume', running.run)
    if (second.code !== 0) expect(second.stderr).toMatch(/is being written by process \d+/)
    expect((await finished).code).toBe(0)
    const all = (await running.rows()).split('\n')
    for (const row of rows.split('\n')) expect(all).toContain(row)
  })
})
