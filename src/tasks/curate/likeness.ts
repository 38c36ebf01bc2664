import type { Task } from '../../core/environment.ts'
import { wordsOfTask } from './task-text.ts'

/** When two tasks count as one. */
export interface LikenessOptions {
  /** Words of a piece that is looked for elsewhere. @default 8 */
  readonly nGram?: number
  /** The share of a task's pieces that another one has, from which on they are alike. @default 0.5 */
  readonly overlap?: number
}

/** Why a task is like another one. */
export interface Likeness {
  readonly of: string
  readonly kind: 'same-text' | 'n-grams'
  /** The share of its pieces that the other one has. */
  readonly share: number
}

/** Tasks that others are compared with. */
export class LikenessIndex {
  readonly #nGram: number
  readonly #overlap: number
  readonly #texts = new Map<string, string>()
  readonly #pieces = new Map<string, string[]>()

  constructor({ nGram = 8, overlap = 0.5 }: LikenessOptions = {}) {
    if (!Number.isInteger(nGram) || nGram < 1) throw new RangeError(`n-grams of ${nGram} words`)
    if (!(overlap > 0 && overlap <= 1)) {
      throw new RangeError(`an overlap of ${overlap}; it is a share above 0, at most 1`)
    }
    this.#nGram = nGram
    this.#overlap = overlap
  }

  add(task: Task): void {
    const words = wordsOfTask(task)
    this.#texts.set(words.join(' '), task.id)
    for (const piece of this.#piecesOf(words)) {
      const owners = this.#pieces.get(piece)
      if (owners) owners.push(task.id)
      else this.#pieces.set(piece, [task.id])
    }
  }

  /** The task that this one is most like; nothing where it is like none. */
  find(task: Task): Likeness | undefined {
    const words = wordsOfTask(task)
    const same = this.#texts.get(words.join(' '))
    if (same !== undefined) return { of: same, kind: 'same-text', share: 1 }
    const pieces = this.#piecesOf(words)
    const counts = new Map<string, number>()
    for (const piece of pieces) {
      for (const owner of this.#pieces.get(piece) ?? []) {
        counts.set(owner, (counts.get(owner) ?? 0) + 1)
      }
    }
    let best: Likeness | undefined
    for (const [of, count] of counts) {
      const share = count / pieces.size
      if (share >= this.#overlap && share > (best?.share ?? 0))
        best = { of, kind: 'n-grams', share }
    }
    return best
  }

  /** Every run of so many words; a shorter text has none, and is compared as a whole alone. */
  #piecesOf(words: readonly string[]): ReadonlySet<string> {
    const pieces = new Set<string>()
    for (let at = 0; at + this.#nGram <= words.length; at++) {
      pieces.add(words.slice(at, at + this.#nGram).join(' '))
    }
    return pieces
  }
}
