import type { Task } from '../../core/environment.ts'

/** Fields that say nothing of what a task asks. */
const aside = new Set(['id', 'index', 'split', 'source', 'metadata'])

/** All words of a task, in order: lower case, without marks; numbers and signs of arithmetic are words too. */
export function wordsOfTask({ data }: Pick<Task, 'data'>): readonly string[] {
  const texts: string[] = []
  collect(data, texts, 0)
  return (
    texts
      .join(' ')
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+|[-+*/=<>%^]/gu) ?? []
  )
}

function collect(value: unknown, texts: string[], depth: number): void {
  if (typeof value === 'string' || typeof value === 'number') texts.push(String(value))
  if (typeof value !== 'object' || value === null || depth > 32) return
  for (const [key, item] of Object.entries(value)) {
    if (Array.isArray(value) || !aside.has(key)) collect(item, texts, depth + 1)
  }
}
