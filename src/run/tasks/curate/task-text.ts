import type { Task } from '../../../base/core/environment.ts'

/** Fields that are not part of a task's question. */
const ignoredFields = new Set(['id', 'index', 'split', 'source', 'metadata'])

/** Scripts that put no spaces between words: each of their letters is one. */
const unspaced =
  '[\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}]'
const word = new RegExp(`${unspaced}|(?:(?!${unspaced})[\\p{L}\\p{M}\\p{N}])+|[-+*/=<>%^]`, 'gu')

/** All words of a task, in order: lower case, without punctuation; numbers and arithmetic signs are words too. */
export function wordsOfTask({ data }: Pick<Task, 'data'>): readonly string[] {
  const texts: string[] = []
  collect(data, texts, 0)
  return texts.join(' ').normalize('NFKC').toLowerCase().match(word) ?? []
}

function collect(value: unknown, texts: string[], depth: number): void {
  if (typeof value === 'string' || typeof value === 'number') texts.push(String(value))
  if (typeof value !== 'object' || value === null || depth > 32) return
  for (const [key, item] of Object.entries(value)) {
    if (Array.isArray(value) || !ignoredFields.has(key)) collect(item, texts, depth + 1)
  }
}
