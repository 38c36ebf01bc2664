import type { Instruction, Program } from './program.ts'
import type { Edge } from './syntax.ts'

/** A match: where it begins and where it ends. */
export type Span = readonly [start: number, end: number]

/** Most memory cells for one text; a cell has one byte, or four for atomic parts. */
const mostCells = 2 ** 26

/** Thrown if a text is too long for a pattern. */
export class LongTextError extends Error {
  override name = 'LongTextError'
}

const failed = 1
/** Cell values from here on say where a match ended. */
const matched = 2

/**
 * Finds the same matches as a backtracking engine, in linear time: a fork that failed at a place once will
 * always fail there, so each pair of fork and place is tried once. This is true because the patterns here
 * have no back-references.
 */
export class Matcher {
  readonly #text: string
  readonly #main: Program
  readonly #cells = new Map<Program, Uint8Array | Int32Array>()
  #held = 0

  constructor(main: Program, text: string) {
    this.#main = main
    this.#text = text
  }

  /** The first match at or behind a place. */
  find(from: number): Span | undefined {
    for (let start = from; start <= this.#text.length; start += this.#width(start)) {
      const end = this.#match(this.#main, start)
      if (end >= 0) return [start, end]
    }
    return undefined
  }

  #width(at: number): number {
    return (this.#text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  }

  #cellsOf(program: Program): Uint8Array | Int32Array {
    const known = this.#cells.get(program)
    if (known) return known
    const count = program.forks * (this.#text.length + 1)
    this.#held += count
    if (this.#held > mostCells) {
      throw new LongTextError(
        `A text of ${this.#text.length} characters is too long for a pattern of this size`,
      )
    }
    const cells = program.keeps === 'end' ? new Int32Array(count) : new Uint8Array(count)
    this.#cells.set(program, cells)
    return cells
  }

  /** Where the match ends that begins here; -1 if there is none. */
  #match(program: Program, start: number): number {
    const { instructions, forks } = program
    const cells = this.#cellsOf(program)
    /** The forks passed so far, and the alternatives left, each with the number of forks passed before it. */
    const path: number[] = []
    const left: number[] = []
    let [step, at] = [0, start]
    for (;;) {
      const instruction = instructions[step]!
      let isLost = false
      if (instruction.do === 'end') return keep(program, { cells, path, end: at })
      if (instruction.do === 'fork') {
        const cell = at * forks + instruction.number
        const known = cells[cell]!
        if (known >= matched) return keep(program, { cells, path, end: known - matched })
        if (known === failed) isLost = true
        else {
          cells[cell] = failed
          path.push(cell)
          left.push(instruction.second, at, path.length)
          step = instruction.first
        }
      } else {
        const next = this.#advance(instruction, at, program.isBackward)
        isLost = next < 0
        at = next
        step = instruction.do === 'jump' ? instruction.to : step + 1
      }
      if (!isLost) continue
      if (left.length === 0) return -1
      path.length = left.pop()!
      at = left.pop()!
      step = left.pop()!
    }
  }

  /** Where an instruction that is no fork leads; -1 if it leads nowhere. */
  #advance(instruction: Instruction, at: number, isBackward: boolean): number {
    switch (instruction.do) {
      case 'take':
        return isBackward ? this.#takeBefore(instruction, at) : this.#takeAt(instruction, at)
      case 'look':
        return this.#match(instruction.program, at) >= 0 !== instruction.isNegated ? at : -1
      case 'atomic':
        return this.#match(instruction.program, at)
      case 'edge':
        return this.#isEdge(instruction.of, at) ? at : -1
      default:
        return at
    }
  }

  #takeAt({ accepts }: Taking, at: number): number {
    const point = this.#text.codePointAt(at)
    if (point === undefined || !accepts(point)) return -1
    return at + (point > 0xffff ? 2 : 1)
  }

  #takeBefore({ accepts }: Taking, at: number): number {
    if (at === 0) return -1
    const pair = at > 1 ? this.#text.codePointAt(at - 2)! : 0
    const point = pair > 0xffff ? pair : this.#text.charCodeAt(at - 1)
    return accepts(point) ? at - (pair > 0xffff ? 2 : 1) : -1
  }

  #isEdge(edge: Edge, at: number): boolean {
    const text = this.#text
    switch (edge) {
      case 'text-start':
        return at === 0
      case 'text-end':
        return at === text.length
      case 'line-start':
        return at === 0 || lineEnd.test(text[at - 1]!)
      case 'line-end':
        return at === text.length || lineEnd.test(text[at]!)
      default: {
        const isWordEdge = word.test(text[at - 1] ?? '') !== word.test(text[at] ?? '')
        return isWordEdge === (edge === 'word-edge')
      }
    }
  }
}

type Taking = Extract<Instruction, { do: 'take' }>

const lineEnd = /[\n\r\u2028\u2029]/
const word = /\w/

interface Matched {
  readonly cells: Uint8Array | Int32Array
  readonly path: readonly number[]
  readonly end: number
}

/** Records for each fork on the path that it led to this end, or clears that it was tried. */
function keep({ keeps }: Program, { cells, path, end }: Matched): number {
  const value = keeps === 'end' ? end + matched : keeps === 'success' ? matched : 0
  for (const cell of path) cells[cell] = value
  return end
}
