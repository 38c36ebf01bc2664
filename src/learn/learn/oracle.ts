import type { Renderer } from '@espalier/text'
import { type Message, textOf } from '@espalier/text'
import type { Task } from '../../base/core/environment.ts'
import type { Policy } from '../../base/core/policy.ts'
import { succeeds } from '../../base/math/attempts.ts'
import { offsetsOf } from '../../base/math/batch.ts'
import { oracleBonus } from '../../base/math/oracle.ts'
import type { MemberRow } from '../../run/rows/row-record.ts'
import type { TokenBonus } from './embedded-trainer.ts'

/** What an oracle bonus is made with. */
export interface OracleOptions {
  readonly policy: Policy
  readonly renderer: Renderer
  /** The text that gives a task's answer away; tasks without one have no bonus. */
  readonly promptOf: (task: string) => string | undefined
  /** What a nat of difference adds to a token's advantage. */
  readonly coefficient: number
  /** Differences are held within ± this many nats. @default 5 */
  readonly limit?: number
  /** The reward from which on a trajectory counts as successful; others have no bonus. @default 1 */
  readonly successAt?: number
}

/** The oracle prompts that tasks bring along, in a field `oracle` of their data. */
export function oraclePrompts(
  tasks: readonly Pick<Task, 'id' | 'data'>[],
): (task: string) => string | undefined {
  const prompts = new Map(tasks.map(({ id, data }) => [id as string, promptIn(data)]))
  return task => prompts.get(task)
}

function promptIn(data: unknown): string | undefined {
  const oracle: unknown =
    typeof data === 'object' && data !== null ? Reflect.get(data, 'oracle') : undefined
  return typeof oracle === 'string' && oracle !== '' ? oracle : undefined
}

/**
 * Re-scores successful trajectories under a prompt that gives the answer away, and adds to each
 * token's advantage what that changes: both sides by the same scorer, clipped, positives only. A token that several
 * trajectories pass through has its bonus in those that succeeded, whichever of them has it in its row.
 */
export function oracleTokenBonus(options: OracleOptions): TokenBonus {
  const { policy, coefficient } = options
  if (!policy.score) throw new Error(`${policy.name} cannot score, which an oracle bonus needs`)
  const { successAt = 1 } = options
  return (rows, { signal, rewardOf }) =>
    Promise.all(
      rows.map(async member => {
        const trajectories = new Set(
          member.row.passages
            .flatMap(({ value }) => value.map(({ trajectory }) => trajectory))
            .filter(trajectory =>
              succeeds(rewardOf(trajectory) ?? Number.NEGATIVE_INFINITY, successAt),
            ),
        )
        if (trajectories.size === 0) return undefined
        const bonus = await bonusOf(member, options, signal)
        return bonus && { values: bonus.map(value => coefficient * value), trajectories }
      }),
    )
}

async function bonusOf(
  member: MemberRow,
  options: OracleOptions,
  signal: AbortSignal,
): Promise<Float64Array | undefined> {
  const { policy, limit = 5 } = options
  const { row, tree } = member
  const from = row.mask.indexOf(1)
  const prompted = promptedPath(member, options)
  if (from < 0 || !prompted) return undefined
  const { temperature } = tree.sampling
  const end = row.mask.lastIndexOf(1) + 1
  const plain = await policy.score!(row.ids.subarray(0, end), from, { temperature }, { signal })
  const oracle = await policy.score!(
    prompted.ids.subarray(0, end + prompted.longer),
    from + prompted.longer,
    { temperature },
    { signal },
  )
  const spread = (logprobs: Float32Array): Float64Array => {
    const all = new Float64Array(row.ids.length)
    all.set(logprobs, from)
    return all
  }
  return oracleBonus(
    {
      offsets: offsetsOf([row.ids.length]),
      trajectory: Int32Array.of(0),
      mask: row.mask,
      logprobs: spread(plain.logprobs),
      oracleLogprobs: spread(oracle.logprobs),
      positive: Uint8Array.of(1),
    },
    { limit },
  )
}

/** The path of a row after an opening with the hint; undefined if the row does not begin with the opening. */
function promptedPath(
  { row, tree }: MemberRow,
  { renderer, promptOf }: OracleOptions,
): { readonly ids: Int32Array; readonly longer: number } | undefined {
  const hint = promptOf(tree.task)
  const opening = row.origins[0]
  const { turns, messages } = row.trajectory
  const count = turns[0]?.messages
  if (hint === undefined || opening?.value !== 'prompt' || row.index > 0 || !count) return undefined
  const prompt = renderer.render(withHint(messages.slice(0, count), hint), tree.tools)
  const rest = row.ids.subarray(opening.end)
  const ids = new Int32Array(prompt.length + rest.length)
  ids.set(prompt)
  ids.set(rest, prompt.length)
  return { ids, longer: prompt.length - opening.end }
}

function withHint(messages: readonly Message[], hint: string): readonly Message[] {
  const [first, ...rest] = messages
  if (first?.role !== 'system') return [{ role: 'system', content: hint }, ...messages]
  return [{ ...first, content: `${hint}\n${textOf(first.content)}` }, ...rest]
}
