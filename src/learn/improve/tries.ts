import { existsSync, readFileSync } from 'node:fs'
import { type Message, textOf } from '@espalier/text'
import type { Environment, Task } from '../../base/core/environment.ts'
import { appenderTo } from '../../base/core/files/appender.ts'
import type { Group } from '../../base/core/group.ts'
import { succeeds } from '../../base/math/attempts.ts'
import { mean } from '../../base/math/statistics.ts'
import { withPrompt } from '../../engine/environments/prompted.ts'
import { type RollParts, rollGroups } from '../../run/run/roll-groups.ts'
import { digestOf, type Parts, promptOf } from './candidate.ts'
import type { Proposal, Trace } from './reflect.ts'

/** One task attempted with one prompt. */
export interface Try extends Omit<Trace, 'reward'> {
  readonly kind: 'try'
  readonly prompt: string
  /** The mean reward; `null` if no attempt could be scored. */
  readonly scored: number | null
  /** The share of attempts that succeeded. */
  readonly solved: number
  readonly sampled: number
}

/** What was written by whoever reflects, under the key of its occasion. */
interface Written extends Proposal {
  readonly kind: 'written'
  readonly key: string
}

/** What cost tokens and is never paid for twice: kept in a file, from which a run that was cut short goes on. */
export interface Tries {
  /** Tries of these tasks with this prompt, in their order; those that are new are rolled. */
  of(parts: Parts, tasks: readonly Task[]): Promise<readonly Try[]>
  /** What was written on this occasion, or is now. */
  written(key: string, write: () => Promise<Proposal>): Promise<Proposal>
  /** Sampled tokens so far: by the policy, and by whoever reflects. */
  readonly tokens: { policy: number; reflection: number }
}

/** What tries are made with. */
export interface TriesOptions {
  /** What attempts are rolled with; their environment gets the prompt. */
  readonly parts: RollParts
  /** The reward from which on an attempt counts as a success. */
  readonly successAt: number
  /** The file that keeps them. */
  readonly file: string
}

/** Opens the record of what was tried, and goes on from what it holds. */
export function makeTries({ parts: rolling, successAt, file }: TriesOptions): Tries {
  const appender = appenderTo(file)
  const tried = new Map<string, Try>()
  const texts = new Map<string, Written>()
  const tokens = { policy: 0, reflection: 0 }
  const keyOf = (prompt: string, task: string): string => `${prompt} ${task}`
  const take = (line: Try | Written): void => {
    if (line.kind === 'try') tried.set(keyOf(line.prompt, line.task), line)
    else texts.set(line.key, line)
    tokens[line.kind === 'try' ? 'policy' : 'reflection'] += line.sampled
  }
  const keep = async (line: Try | Written): Promise<void> => {
    await appender.append(`${JSON.stringify(line)}\n`)
    take(line)
  }
  for (const line of readLines(file)) take(line)

  async function of(parts: Parts, tasks: readonly Task[]): Promise<readonly Try[]> {
    const prompt = digestOf(parts)
    const missing = tasks.filter(({ id }) => !tried.has(keyOf(prompt, id)))
    if (missing.length > 0) {
      const data = new Map<string, unknown>(missing.map(task => [task.id, task.data]))
      const prompted: Environment = {
        ...withPrompt(rolling.environment, promptOf(parts)),
        // These were read before.
        readTask: entry => data.get((entry as { readonly id: string }).id),
      }
      const ids = missing.map(({ id }) => ({ id }))
      for await (const group of rollGroups(ids, { ...rolling, environment: prompted })) {
        await keep(tryOf(group, { prompt, successAt, data: data.get(group.task) }))
      }
    }
    return tasks.map(({ id }) => tried.get(keyOf(prompt, id))!)
  }
  return {
    of,
    tokens,
    async written(key, write) {
      if (!texts.has(key)) await keep({ kind: 'written', key, ...(await write()) })
      return texts.get(key)!
    },
  }
}

/** Lines that a kill cut are left out: what they held is tried again. */
function readLines(file: string): readonly (Try | Written)[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap(line => {
      try {
        return line === '' ? [] : [JSON.parse(line) as Try | Written]
      } catch {
        return []
      }
    })
}

function tryOf(
  { task, members, unscored }: Group,
  {
    prompt,
    successAt,
    data,
  }: { readonly prompt: string; readonly successAt: number; readonly data: unknown },
): Try {
  const rewards = members.map(({ reward }) => reward.total)
  const all = [...members, ...unscored]
  const sampled = all.reduce((sum, { trajectory }) => sum + trajectory.usage.sampled, 0)
  const [first] = members
  const parts = (first?.reward.parts ?? []).map(({ name, score }) => `${name} ${score}`)
  const text = [
    `The task: ${shorten(JSON.stringify(data) ?? '', 1500)}`,
    ...shorten(conversation(first?.trajectory.messages ?? []), 6000).split('\n'),
    `Ended: ${first?.trajectory.outcome.kind ?? 'failed'}. Parts of the reward: ${parts.join(', ')}.`,
  ].join('\n')
  const scored = rewards.length === 0 ? null : mean(rewards)
  const solved = scored === null ? 0 : mean(rewards.map(each => Number(succeeds(each, successAt))))
  return { kind: 'try', prompt, task, text, sampled, scored, solved }
}

/** The conversation without the system message, which whoever reflects has before them. */
function conversation(messages: readonly Message[]): string {
  return messages
    .filter(({ role }) => role !== 'system')
    .map(message => {
      const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
      const called = calls.map(({ function: { name, arguments: input } }) => `${name}(${input})`)
      return `${message.role}: ${[textOf(message.content), ...called].join(' ')}`
    })
    .join('\n')
}

function shorten(text: string, characters: number): string {
  if (text.length <= characters) return text
  const half = Math.floor(characters / 2)
  return `${text.slice(0, half)} […] ${text.slice(-half)}`
}
