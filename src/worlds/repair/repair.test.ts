import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openByteRenderer, script } from '../../../test/rolling.ts'
import type { Group } from '../../base/core/group.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { reportLines } from '../../cli/report-lines.ts'
import { playWorld, type Situation, scorePlay } from '../../engine/environments/play.ts'
import { toPlayer } from '../../run/demonstrations/demonstrations.ts'
import { roll } from '../../run/run/roll.ts'
import { readManifest } from '../../run/store/run-folder.ts'
import { reportRun } from '../../run/watch/run-report.ts'
import { findWalls } from '../sandboxes/walls.ts'
import type { Workspaces } from '../workspaces/contract.ts'
import { type RepairTask, repair, showRepair } from './repair.ts'

const { signal } = new AbortController()
const lanes = makeLanes({ policy: 1, tools: 4, environment: 4, reward: 1 })
const call = { signal, seed: 1, lanes }
const player = toPlayer(showRepair)

describe('repair', () => {
  it('makes broken programs from a seed, some of which are held out', () => {
    const { makeTasks } = repair({ sandbox: broken })
    const train = makeTasks!({ count: 1000, seed: 3 })
    const heldOut = makeTasks!({ count: 1000, seed: 4, split: 'held-out' })
    expect(train.length).toBeGreaterThan(30)
    expect(heldOut.length).toBeGreaterThan(5)
    const ids = new Set(train.map(({ id }) => id))
    expect(heldOut.some(({ id }) => ids.has(id))).toBe(false)
    expect(makeTasks!({ count: 5, seed: 3 })).toEqual(train.slice(0, 5))
    for (const { data } of [...train, ...heldOut]) {
      expect(data.source.split(data.fix!.find)).toHaveLength(2)
    }
  })

  it('a workspace that breaks costs the attempt, with its reason, and is no score of 0', async () => {
    const renderer = await openByteRenderer()
    const policy = script(renderer, ['done'])
    const environment = repair({ sandbox: broken })
    const groups: Group[] = []
    const options = { policy, model: renderer, group: 1 }
    for await (const group of roll(environment, 1, options)) groups.push(group)
    expect(groups[0]).toMatchObject({
      members: [],
      unscored: [{ outcome: { boundary: 'environment', message: 'the disk is gone' } }],
    })
  })
})

it.each([
  [
    { by: 'a box', standing: ['network', 'files'], missing: [] },
    'walls around code: network, files (a box)',
  ],
  [
    { standing: [], missing: ['network', 'files'] },
    'WARNING: code of the policy runs without walls of the system against network, files.',
  ],
])(
  'H1: which walls stand is told at the start and kept with the run: %j',
  async (isolation, line) => {
    const renderer = await openByteRenderer()
    const out = join(mkdtempSync(join(tmpdir(), 'walls-')), 'run')
    const told: string[] = []
    const tell = (text: string): number => told.push(text)
    const options = { policy: script(renderer, ['done']), model: renderer, group: 1, out, tell }
    for await (const group of roll(repair({ sandbox: { ...broken, isolation } }), 1, options)) {
      expect(group.members).toEqual([])
    }
    expect(told.filter(each => each.includes(line))).toHaveLength(1)
    expect((await readManifest(out)).isolation).toEqual(isolation)
    const report = await reportRun(out)
    expect(report.isolation).toEqual(isolation)
    expect(reportLines(report).join('\n')).toMatch(/walls +(network, files|none; missing: network)/)
  },
)

/** Workspaces on a machine that dies. */
const broken: Workspaces = {
  name: 'broken',
  isolation: { standing: ['network'], missing: [] },
  open: async () => ({
    run: () => Promise.reject(new Error('the disk is gone')),
    put: async () => {},
    fork: () => Promise.reject(new Error('the disk is gone')),
    [Symbol.asyncDispose]: async () => {},
  }),
  [Symbol.asyncDispose]: async () => {},
}

describe.runIf(findWalls().by !== undefined)('repair within walls', () => {
  const environment = repair()
  const [task] = environment.makeTasks!({ count: 1, seed: 0 })

  it('who knows the mistake solves it; who does nothing does not', async () => {
    const shown = await scorePlay(environment, task!, { ...call, player, turns: 8 })
    expect(shown.total).toBe(1)
    const idle = await scorePlay(environment, task!, {
      ...call,
      player: toPlayer(() => 'done'),
      turns: 1,
    })
    expect(idle.total).toBe(0)
  })

  it('what is right is decided where no program reaches: tests that are changed prove nothing', async () => {
    const cheat = toPlayer(({ turn }: Situation<RepairTask>) => {
      if (turn > 0) return 'done'
      const command =
        'echo "console.log(1)" > tests.mjs; echo "console.log(JSON.stringify([])); process.exit(0)" > program.mjs'
      return { tool: 'shell', input: { command } }
    })
    await using world = await environment.open(task!, call)
    const play = await playWorld(world, task!, { player: cheat, turns: 3, signal })
    expect(play.report).toMatchObject({ passed: 0 })
  })

  it('a fork has the files of its world and goes its own way', async () => {
    await using world = await environment.open(task!, call)
    await using fork = await world.fork!(call)
    await playWorld(fork, task!, { player, turns: 2, signal })
    expect(await fork.report!()).toMatchObject({ passed: 6, total: 6 })
    expect(await world.report!()).not.toMatchObject({ passed: 6 })
  })
})
