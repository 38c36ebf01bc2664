import { createHash } from 'node:crypto'
import type { Prompt } from '../../engine/environments/prompted.ts'

/** The parts of a prompt that are rewritten one by one: `system`, and `tool NAME` for every tool. */
export type Parts = ReadonlyMap<string, string>

/** A prompt that was tried on every validation task. */
export interface Candidate {
  readonly parts: Parts
  /** The places of the candidates it was made of; none for the first. */
  readonly parents: readonly number[]
  /** The reward of each validation task, in their order; not a number if it could not be scored. */
  readonly scores: readonly number[]
}

/** The parts of a prompt, and those that it leaves to the environment. */
export function partsOf(prompt: Prompt): Parts {
  const tools = Object.entries(prompt.tools ?? {}).map(([name, text]): [string, string] => [
    `tool ${name}`,
    text,
  ])
  return new Map([['system', prompt.system ?? ''], ...tools])
}

/** The prompt that has these parts. */
export function promptOf(parts: Parts): Prompt {
  const tools = [...parts].flatMap(([name, text]) =>
    name.startsWith('tool ') ? [[name.slice(5), text] as const] : [],
  )
  const system = parts.get('system')
  return {
    ...(system && { system }),
    ...(tools.length > 0 && { tools: Object.fromEntries(tools) }),
  }
}

/** A short name of a prompt, the same for the same parts. */
export function digestOf(parts: Parts): string {
  const text = JSON.stringify([...parts].sort(([a], [b]) => (a < b ? -1 : 1)))
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

/** The mean of the scores that are numbers; 0 if none is. */
export function meanScore({ scores }: Pick<Candidate, 'scores'>): number {
  const known = scores.filter(score => !Number.isNaN(score))
  return known.length === 0 ? 0 : known.reduce((sum, score) => sum + score, 0) / known.length
}
