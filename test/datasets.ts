import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Message } from '@espalier/text'
import { expect } from 'vitest'
import type { Task } from '../src/base/core/environment.ts'
import { keywordCondenser } from '../src/engine/condensers/keyword.ts'
import { type PassageTask, passages } from '../src/engine/environments/built-in/passages.ts'
import type { DatasetOptions } from '../src/learn/datasets/build.ts'
import { readSplits } from '../src/learn/datasets/splits.ts'

/** A signal that nothing aborts. */
export const signal = new AbortController().signal
const boundary = /(?<=\n\n)/
/** Passages as blocks, a quarter as long. */
export const condenser = keywordCondenser({ chunk: { boundary } })
/** Questions over passages. */
export const world = passages()
/** Made questions. */
export const made = (count: number, seed = 1): readonly Task<PassageTask>[] =>
  world.makeTasks!({ count, seed })

/** An empty folder. */
export const folder = (): Promise<string> => mkdtemp(join(tmpdir(), 'dataset-'))

/** How a set of a test is built. */
export async function optionsFor(parts: Partial<DatasetOptions> = {}): Promise<DatasetOptions> {
  return {
    out: join(await folder(), 'set.jsonl'),
    splits: readSplits('train=0.8,held-out=0.2'),
    seed: 1,
    concurrency: 4,
    signal,
    settings: { kind: 'test' },
    ...parts,
  }
}

/** The lines of a file, as values. */
export async function readLines<T>(file: string): Promise<readonly T[]> {
  const text = await readFile(file, 'utf8')
  return text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as T)
}

/** Every result stands behind its call. */
export function expectPaired(messages: readonly Message[]): void {
  const asked = messages.flatMap(each =>
    each.role === 'assistant' ? (each.tool_calls ?? []).map(({ id }) => id) : [],
  )
  expect(messages.flatMap(each => (each.role === 'tool' ? [each.tool_call_id] : []))).toEqual(asked)
}
