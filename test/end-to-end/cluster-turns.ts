import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { connectionOf } from '../../src/doors/cluster/address.ts'
import { openDatabase } from '../../src/doors/cluster/database.ts'
import { migrate } from '../../src/doors/cluster/schema.ts'
import { entriesFromFrame } from '../../src/run/store/attempt-record.ts'
import { decodeFrame } from '../../src/run/store/frame.ts'
import type { SegmentPlace } from '../../src/run/store/segments/pointer.ts'
import { follow, openStorage } from '../../src/run/store/segments/storage.ts'
import { until } from '../until.ts'
import { openTrial, resultsIn } from './chaos.ts'
import { espalier, start } from './cli.ts'
import { startWorker, type TestServer } from './cluster.ts'

const trial = { seed: 5, tasks: 2, group: 4, latency: 0, calls: 3 }
const attempts = trial.tasks * trial.group

/** Turns that a worker left which was killed. */
export function describeTurns(server: TestServer): void {
  it('[P1] goes on with attempts of a killed worker from their last turn: nothing that was answered is sampled again', async () => {
    await using plain = await openTrial(trial)
    await espalier(...plain.words)
    let isHeld = true
    let held = 0
    await using lost = await openTrial({
      ...trial,
      fault(_, { input_ids }) {
        if (!isHeld || resultsIn(input_ids) < 2) return undefined
        held++
        return 'hang'
      },
    })
    const segments = join(lost.folder, 'segments')
    const storage = await openStorage(segments)
    await using database = await openDatabase(connectionOf(server.url))
    await migrate(database)
    /** Samples that a worker which goes on would find. */
    const kept = async (): Promise<number> => {
      const places = await database.query<SegmentPlace>(
        'SELECT id, segment, start AS offset, size, sum::float8 AS sum FROM espalier.turns',
      )
      const frames = await Promise.all(places.map(place => follow(storage, place)))
      const entries = frames.flatMap(frame => entriesFromFrame(decodeFrame(frame, 0)))
      return entries.filter(({ kind }) => kind === 'sample').length
    }
    const words = [...lost.words, '--cluster', server.address, '--segments', segments]
    const { finished } = start(words, { variables: server.variables })
    const options = { lease: 1, concurrency: 2 * attempts }
    const first = startWorker(server, '.', { ...options, threads: 2 })
    await until(async () => held === attempts && (await kept()) === 2 * attempts)
    first.child.kill('SIGKILL')
    isHeld = false
    const second = startWorker(server, '.', options)
    const { code, stderr } = await finished
    second.child.kill('SIGTERM')
    const told = (await second.finished).stderr
    expect(code, stderr).toBe(0)
    expect(await lost.rows()).toBe(await plain.rows())
    expect(lost.generations() - plain.generations(), told).toBe(0)
    const left = readdirSync(segments, { recursive: true, encoding: 'utf8' })
    expect([await kept(), left.filter(name => name.endsWith('.frames'))]).toEqual([0, []])
  }, 60_000)
}
