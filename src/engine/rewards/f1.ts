import { expectedAnswers, finalAnswerIn } from '../../base/core/answer.ts'
import type { RewardFunction } from '../../base/core/reward.ts'

const closed: ReadonlySet<string> = new Set(['yes', 'no', 'noanswer'])

/**
 * SQuAD's F1 between the words of the final answer and the task's `answer`, the best if there are
 * several; punctuation and articles are dropped. Yes and no must match exactly.
 */
export function f1(): RewardFunction {
  return ({ answer, task }) => {
    const words = wordsOf(finalAnswerIn(answer))
    return Math.max(...expectedAnswers(task.data).map(expected => f1Of(words, wordsOf(expected))))
  }
}

/** F1 of two bags of words: 2pr / (p + r); 1 if both are empty. */
export function f1Of(words: readonly string[], expected: readonly string[]): number {
  if (words.length === 0 || expected.length === 0) return Number(words.length === expected.length)
  const [said, wanted] = [words.join(' '), expected.join(' ')]
  if (said !== wanted && (closed.has(said) || closed.has(wanted))) return 0
  const shared = countShared(words, expected)
  if (shared === 0) return 0
  const precision = shared / words.length
  const recall = shared / expected.length
  return (2 * precision * recall) / (precision + recall)
}

function countShared(words: readonly string[], expected: readonly string[]): number {
  const left = new Map<string, number>()
  for (const word of expected) left.set(word, (left.get(word) ?? 0) + 1)
  let shared = 0
  for (const word of words) {
    const count = left.get(word) ?? 0
    if (count === 0) continue
    left.set(word, count - 1)
    shared++
  }
  return shared
}

function wordsOf(text: string): readonly string[] {
  return text
    .normalize('NFC')
    .toLowerCase()
    .replace(/[\p{P}\p{S}]/gu, '')
    .split(/\s+/u)
    .filter(word => word !== '' && word !== 'a' && word !== 'an' && word !== 'the')
}
