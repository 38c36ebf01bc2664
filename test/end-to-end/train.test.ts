import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Environment } from '../../src/base/core/environment.ts'
import type { Group } from '../../src/base/core/group.ts'
import { desk } from '../../src/engine/environments/desk/desk.ts'
import { makeEstimate } from '../../src/engine/weigh/estimate.ts'
import { rewardsOf } from '../../src/learn/learn/embedded-trainer.ts'
import { oraclePrompts, oracleTokenBonus } from '../../src/learn/learn/oracle.ts'
import { rendererOf } from '../../src/learn/learn/train.ts'
import { openEmbedded } from '../../src/learn/model/embedded.ts'
import { groupRows, type MemberRow } from '../../src/run/rows/row-record.ts'
import { rollGroups } from '../../src/run/run/roll-groups.ts'
import { runCommand } from '../command-line.ts'
import { scratch } from './cli.ts'

const folder = scratch()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A line of a run's metrics; what is looked at. */
interface Step {
  readonly success: number
  readonly sampledTokens: number
  readonly policyLoss: number
  readonly kl: number
  readonly seconds: object
}

/** Three short steps at the desk, as `espalier train` takes them. */
async function trainDesk(name: string, ...flags: readonly string[]): Promise<readonly Step[]> {
  const out = join(folder, name)
  const { code, stderr } = await runCommand([
    ...['train', '--policy', 'embedded', '--environment', 'desk', '--tasks', '48'],
    ...['--steps', '3', '--tasks-per-step', '8', '--group', '4', '--held-out', '16'],
    ...['--max-turns', '10', '--max-new-tokens', '24', '--seed', '3', '--out', out, '--json'],
    ...flags,
  ])
  expect(code, stderr).toBe(0)
  const lines = readFileSync(join(out, 'metrics.jsonl'), 'utf8').trim().split('\n')
  return lines.map(line => JSON.parse(line) as Step)
}

describe('the oracle bonus at the desk', () => {
  it('changes what is learned and nothing of what is rolled before it', async () => {
    const without = await trainDesk('without')
    const again = await trainDesk('again', '--oracle-bonus', '0')
    const told = await trainDesk('with', '--oracle-bonus', '0.5')
    expect(again.map(toNumbers)).toEqual(without.map(toNumbers))
    const [plain, first] = [without[0]!, told[0]!]
    expect([first.success, first.sampledTokens]).toEqual([plain.success, plain.sampledTokens])
    expect(first.policyLoss).not.toBe(plain.policyLoss)
    expect(told.at(-1)!.kl).not.toBe(without.at(-1)!.kl)
    const { code, stdout } = await runCommand([
      ...['audit', join(folder, 'with'), '--policy', 'embedded', '--json'],
    ])
    expect(code, stdout).toBe(0)
  })

  it('lifts the words in which a solved task was decided, and only those of solved ones', async () => {
    await using policy = await openEmbedded(undefined, { threads: 1 })
    const environment = desk() as Environment
    const tasks = environment.makeTasks!({ count: 16, seed: 5 })
    const renderer = rendererOf(policy)
    const groups = await rolled(environment, tasks.length, policy)
    const rows = groups.flatMap(group => groupRows(group))
    const bonus = oracleTokenBonus({
      policy,
      renderer,
      promptOf: oraclePrompts(tasks),
      coefficient: 1,
    })
    const given = await bonus(rows, {
      signal: new AbortController().signal,
      rewardOf: rewardsOf(groups),
    })
    const lifted = new Map<string, number>()
    rows.forEach((row, index) => {
      const values = given[index]?.values
      expect(values !== undefined).toBe(isSolved(row))
      values?.forEach((value, token) => {
        if (value === 0) return
        const word = renderer.tokenizer.decode(row.row.ids.subarray(token, token + 1))
        lifted.set(word, (lifted.get(word) ?? 0) + value)
      })
    })
    const total = sumOf([...lifted.values()])
    expect(total).toBeGreaterThan(1)
    const deciding = [...lifted].filter(([word]) => decides.test(word.trim()))
    expect(sumOf(deciding.map(([, value]) => value)) / total).toBeGreaterThan(0.5)
  })
})

/** Whether to speak or to call, what to call, and what to name as the reason. */
const decides =
  /^(sorry|<\|tool_call_start\|>|\[(cancel|address|exchange|refund|transfer)|pending|shipped|delivered|old|gone)/

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

/** A step without what clocks say. */
function toNumbers({ seconds: _, ...numbers }: Step): object {
  return numbers
}

function isSolved({ member }: MemberRow): boolean {
  return 'reward' in member && member.reward.total >= 1
}

async function rolled(
  environment: Environment,
  tasks: number,
  policy: Awaited<ReturnType<typeof openEmbedded>>,
): Promise<readonly Group[]> {
  const groups: Group[] = []
  for await (const group of rollGroups(tasks, {
    environment,
    policy,
    renderer: rendererOf(policy),
    estimate: makeEstimate('grpo'),
    group: 4,
    limits: { turns: 10, newTokens: 24 },
    seed: 5,
  })) {
    groups.push(group)
  }
  return groups
}
