import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { environment } from '../../engine/environments/environment.ts'
import { scripted } from '../../engine/policies/scripted.ts'
import { defaults } from '../settings/settings.ts'
import { roll } from './roll.ts'
import { type RollOptions, rollOptionsOf } from './roll-options.ts'

let opened = 0
const world = environment({
  name: 'small',
  task: z.object({ n: z.int() }),
  open() {
    opened++
    return { opening: [{ role: 'user', content: 'x' }] }
  },
  reward: { one: () => 1 },
})

/** What the first `next()` says to arguments as JavaScript or a typo may give them. */
async function said(options: unknown, tasks: unknown = [{ n: 1 }], of: unknown = world) {
  const groups = roll(of as typeof world, tasks as { n: number }[], options as RollOptions)
  const { done } = await groups.next().catch((error: Error) => ({ done: error.message }))
  return done
}

const policy = await scripted(['x'])
const withPolicy = (more: object) => said({ policy, group: 1, ...more })

describe('an option that is not possible', () => {
  it.each([
    [{ concurrency: 0 }, /^options\.concurrency: 0 is not possible .*>=1/],
    [{ concurrency: -1 }, /^options\.concurrency: -1 is not possible/],
    [{ concurrency: Number.NaN }, /^options\.concurrency: NaN is not possible/],
    [{ concurrency: { tool: 4 } }, /^options\.concurrency: .*"tool".*Did you mean "tools"\?/],
    [{ group: 0 }, /^options\.group: 0 is not possible .*>=1/],
    [{ group: 1.5 }, /^options\.group: 1\.5 is not possible/],
    [{ group: '2' }, /^options\.group: "2" is not possible .*expected number, received string/],
    [{ gruop: 2 }, /^options\.gruop: no option called "gruop"\. Did you mean "group"\?$/],
    [{ temperature: 1 }, /no option called "temperature"\. It is sampling\.temperature\.$/],
    [{ maxTurns: 0 }, /no option called "maxTurns"\. It is limits\.turns\.$/],
    [{ limits: { truns: 1 } }, /^options\.limits: .*"truns"\. Did you mean "turns"\?/],
    [{ limits: { turns: -1 } }, /^options\.limits: \{"turns":-1\} is not possible: turns: .*>=1/],
    [{ limits: { turns: 0 } }, /^options\.limits: .*turns: /],
    [{ sampling: { temperature: -1 } }, /^options\.sampling: .*temperature: .*>=0/],
    [{ seed: 'x' }, /^options\.seed: "x" is not possible/],
    [{ budget: { token: 1 } }, /^options\.budget: .*"token"\. Did you mean "tokens"\?/],
    [{ budget: { tokens: -1 } }, /^options\.budget: .*tokens: .*>=1/],
    [{ filters: 'nope' }, /^options\.filters: "nope" is not possible .*expected array/],
    [{ filters: ['nope'] }, /^--filter nope: No filter called "nope"/],
    [{ strategy: 'chian' }, /^options\.strategy: "chian" is not possible .*"chain"/],
    [{ onLength: 'go' }, /^options\.onLength: "go" is not possible .*"continue"/],
    [{ out: 5 }, /^options\.out: 5 is not possible/],
    [{ listen: 'aloud' }, /^options\.listen: "aloud" is not possible: it is a function/],
    [{ steps: 5 }, /^options\.steps: roll takes no option "steps"; train does$/],
    [{ successAt: 1 }, /roll takes no option "successAt"; evaluate and train do$/],
    [{ port: 8700 }, /roll takes no option "port"; gateway does$/],
    [{ environment: 'desk' }, /takes no option "environment"; it is the first argument$/],
    [{ tasks: 5 }, /takes no option "tasks"; it is the second argument$/],
    [{ policy: {} }, /^options\.policy: \{\} is not possible .*nor is it an opened policy/],
    [{ policy: undefined }, /^options\.policy is missing: a URI such as/],
    [{ policy: '' }, /^options\.policy: "" is not possible/],
  ])('%j is refused by name, with what was possible', async (more, message) => {
    expect(await withPolicy(more)).toMatch(message)
    expect(opened).toBe(0)
  })

  it.each([undefined, null, 'embedded', []])(
    '%j for all of them says what they are',
    async none => {
      expect(await said(none ?? null)).toMatch(/^options: .* is not possible: an object that names/)
    },
  )
})

describe('arguments that are not possible', () => {
  it.each([null, { n: 1 }, [], 0, -1, 1.5, Number.NaN, () => [{ n: 1 }]])(
    'tasks cannot be %s',
    async tasks => {
      expect(await said({ policy }, tasks)).toMatch(
        /^tasks: .* is not possible: a file, a run, how/,
      )
    },
  )

  it('tasks cannot be left out', async () => {
    const groups = roll(world, undefined as never, { policy })
    await expect(groups.next()).rejects.toThrow(/^tasks: undefined is not possible/)
  })

  it.each([{}, null, 5])('an environment cannot be %j', async of => {
    expect(await said({ policy }, [{ n: 1 }], of)).toMatch(/neither an environment nor an agent/)
  })
})

it('a run that is not there cannot go on', async () => {
  const out = join(mkdtempSync(join(tmpdir(), 'espalier-none-')), 'none')
  expect(await withPolicy({ out, resumes: true })).toMatch(/none is not a run: there is no such/)
})

it('a budget that no group fits into is refused', async () => {
  expect(await withPolicy({ group: 4, budget: { trajectories: 3 } })).toMatch(
    /^--budget: one group takes 4 trajectories, more than the 3 of the budget/,
  )
})

it('a run folder cannot lie below a file', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'espalier-below-')), 'file')
  writeFileSync(file, '')
  expect(await withPolicy({ out: join(file, 'x', 'y') })).toMatch(/^--out .*file is a file, not a/)
})

it('options that are possible are taken: opened parts, undefined, and whatever settings make', async () => {
  const filter = { name: 'none', judge: () => [] }
  const more = {
    filters: [filter],
    limits: { seconds: Number.POSITIVE_INFINITY, turns: undefined },
  }
  const strange = { ...more, sampling: { temperature: undefined }, seed: undefined, tell: () => {} }
  expect(await withPolicy(strange)).toBe(false)
  const made = rollOptionsOf({ ...defaults, policy: ['embedded'], temperature: 0.5, maxTurns: 3 })
  expect(await said({ ...made, policy, group: 1 })).toBe(false)
})
