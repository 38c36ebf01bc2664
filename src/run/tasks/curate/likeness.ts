import type { Task } from '../../../base/core/environment.ts'
import { wordsOfTask } from './task-text.ts'

/** When two tasks count as one. */
export interface LikenessOptions {
  /** Words per n-gram. @default 8 */
  readonly nGram?: number
  /** The share of the shorter task's pieces in the longer one, from which on they are alike. @default 0.5 */
  readonly overlap?: number
}

/** Why a task is like another one. */
export interface Likeness {
  readonly of: string
  readonly kind: 'same-text' | 'n-grams'
  /** The share of the shorter one's pieces that the longer one has. */
  readonly share: number
}

/** Fewest tasks of which something can be said that most of them share. */
const fewest = 8

/** Tasks that others are compared with. */
export class LikenessIndex {
  readonly #nGram: number
  readonly #overlap: number
  /** Pieces of what most tasks share, such as an instruction: they tell no two of them apart. */
  readonly #shared: ReadonlySet<string>
  readonly #texts = new Map<string, string>()
  /** Who has a piece. */
  readonly #owners = new Map<string, string[]>()
  readonly #sizes = new Map<string, number>()

  /** `all` are the tasks that will be added or looked for. */
  constructor({ nGram = 8, overlap = 0.5 }: LikenessOptions, all: readonly Task[]) {
    if (!Number.isInteger(nGram) || nGram < 1) throw new RangeError(`n-grams of ${nGram} words`)
    if (!(overlap > 0 && overlap <= 1)) {
      throw new RangeError(`an overlap of ${overlap}; it is a share above 0, at most 1`)
    }
    this.#nGram = nGram
    this.#overlap = overlap
    this.#shared = sharedPieces(all, nGram)
  }

  add(task: Task): void {
    const words = wordsOfTask(task)
    this.#texts.set(words.join(' '), task.id)
    const pieces = this.#piecesOf(words)
    this.#sizes.set(task.id, pieces.size)
    for (const piece of pieces) {
      const owners = this.#owners.get(piece)
      if (owners) owners.push(task.id)
      else this.#owners.set(piece, [task.id])
    }
  }

  /** The task that this one is most like; undefined if there is none. */
  find(task: Task): Likeness | undefined {
    return this.findAll(task).reduce<Likeness | undefined>(
      (best, each) => (best && best.share >= each.share ? best : each),
      undefined,
    )
  }

  /** Every task that this one is like, one with the same text first. */
  findAll(task: Task): readonly Likeness[] {
    const words = wordsOfTask(task)
    const same = this.#texts.get(words.join(' '))
    const found: Likeness[] = same === undefined ? [] : [{ of: same, kind: 'same-text', share: 1 }]
    const pieces = this.#piecesOf(words)
    const counts = new Map<string, number>()
    for (const piece of pieces) {
      for (const owner of this.#owners.get(piece) ?? []) {
        counts.set(owner, (counts.get(owner) ?? 0) + 1)
      }
    }
    for (const [of, count] of counts) {
      const share = count / Math.min(pieces.size, this.#sizes.get(of)!)
      if (of !== same && share >= this.#overlap) found.push({ of, kind: 'n-grams', share })
    }
    return found
  }

  #piecesOf(words: readonly string[]): ReadonlySet<string> {
    const pieces = piecesOf(words, this.#nGram)
    for (const piece of this.#shared) pieces.delete(piece)
    return pieces
  }
}

/** Every n-gram; a shorter text has none, and is only compared as a whole. */
function piecesOf(words: readonly string[], nGram: number): Set<string> {
  const pieces = new Set<string>()
  for (let at = 0; at + nGram <= words.length; at++) {
    pieces.add(words.slice(at, at + nGram).join(' '))
  }
  return pieces
}

/** Pieces that more than half of the tasks have. */
function sharedPieces(tasks: readonly Task[], nGram: number): ReadonlySet<string> {
  const counts = new Map<string, number>()
  if (tasks.length < fewest) return new Set()
  for (const task of tasks) {
    for (const piece of piecesOf(wordsOfTask(task), nGram)) {
      counts.set(piece, (counts.get(piece) ?? 0) + 1)
    }
  }
  return new Set([...counts].flatMap(([piece, count]) => (count > tasks.length / 2 ? piece : [])))
}
