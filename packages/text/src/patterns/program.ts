import type { Edge, Part } from './syntax.ts'

/** One thing to do at a place of a text. */
export type Instruction =
  | { readonly do: 'take'; readonly accepts: (point: number) => boolean }
  /** Goes on at `first`, and if that fails at `second`; `number` counts the forks. */
  | { readonly do: 'fork'; first: number; second: number; readonly number: number }
  | { readonly do: 'jump'; to: number }
  | { readonly do: 'look'; readonly program: Program; readonly isNegated: boolean }
  | { readonly do: 'atomic'; readonly program: Program }
  | { readonly do: 'edge'; readonly of: Edge }
  | { readonly do: 'end' }

/** A part as instructions, one after another. */
export interface Program {
  readonly instructions: readonly Instruction[]
  readonly forks: number
  /** Whether it reads from right to left, as lookbehinds do. */
  readonly isBackward: boolean
  /** What is remembered about a place where it matched. */
  readonly keeps: 'nothing' | 'success' | 'end'
}

/** More than any pattern that a person wrote needs; bounded repetitions are written out. */
const mostInstructions = 20_000

/** A pattern that is too large. */
export class LargePatternError extends Error {
  override name = 'LargePatternError'
}

/** Writes a part as a program. */
export function compilePart(part: Part): Program {
  return compile(part, { left: mostInstructions }, { isBackward: false, keeps: 'nothing' })
}

interface Budget {
  left: number
}

interface Writer {
  readonly instructions: Instruction[]
  readonly budget: Budget
  readonly isBackward: boolean
  forks: number
}

function compile(part: Part, budget: Budget, how: Pick<Program, 'isBackward' | 'keeps'>): Program {
  const writer: Writer = { instructions: [], budget, isBackward: how.isBackward, forks: 0 }
  write(writer, part)
  add(writer, { do: 'end' })
  return { ...how, instructions: writer.instructions, forks: writer.forks }
}

function add<One extends Instruction>(writer: Writer, instruction: One): One {
  if (--writer.budget.left < 0) {
    throw new LargePatternError(`The pattern has more than ${mostInstructions} steps`)
  }
  writer.instructions.push(instruction)
  return instruction
}

function write(writer: Writer, part: Part): void {
  if (part.kind === 'set') add(writer, { do: 'take', accepts: part.accepts })
  else if (part.kind === 'edge') add(writer, { do: 'edge', of: part.of })
  else if (part.kind === 'choice') writeChoice(writer, part.parts)
  else if (part.kind === 'repeat') writeRepeat(writer, part)
  else if (part.kind === 'sequence') {
    const parts = writer.isBackward ? part.parts.toReversed() : part.parts
    for (const each of parts) write(writer, each)
  } else writeApart(writer, part)
}

/** Lookarounds and atomic parts become programs of their own. */
function writeApart(writer: Writer, part: Extract<Part, { kind: 'look' | 'atomic' }>): void {
  const { budget, isBackward } = writer
  if (part.kind === 'atomic') {
    const program = compile(part.part, budget, { isBackward, keeps: 'end' })
    add(writer, { do: 'atomic', program })
  } else {
    const program = compile(part.part, budget, { isBackward: !part.isAhead, keeps: 'success' })
    add(writer, { do: 'look', program, isNegated: part.isNegated })
  }
}

function writeChoice(writer: Writer, parts: readonly Part[]): void {
  const ends: Extract<Instruction, { do: 'jump' }>[] = []
  for (const part of parts.slice(0, -1)) {
    const fork = addFork(writer)
    fork.first = writer.instructions.length
    write(writer, part)
    ends.push(add(writer, { do: 'jump', to: 0 }))
    fork.second = writer.instructions.length
  }
  write(writer, parts.at(-1)!)
  for (const end of ends) end.to = writer.instructions.length
}

type Repeat = Extract<Part, { kind: 'repeat' }>

function writeRepeat(writer: Writer, { part, least, most, isLazy }: Repeat): void {
  for (let count = 0; count < least; count++) write(writer, part)
  const closing: (() => void)[] = []
  if (most === Number.POSITIVE_INFINITY) {
    const start = writer.instructions.length
    closing.push(openOptional(writer, part, isLazy))
    add(writer, { do: 'jump', to: start })
  } else {
    for (let count = least; count < most; count++) closing.push(openOptional(writer, part, isLazy))
  }
  for (const close of closing) close()
}

/** Writes an optional part; the returned function sets its jump target once that is known. */
function openOptional(writer: Writer, part: Part, isLazy: boolean): () => void {
  const fork = addFork(writer)
  const inside = writer.instructions.length
  write(writer, part)
  return () => {
    const outside = writer.instructions.length
    fork.first = isLazy ? outside : inside
    fork.second = isLazy ? inside : outside
  }
}

type Fork = Extract<Instruction, { do: 'fork' }>

const addFork = (writer: Writer): Fork =>
  add(writer, { do: 'fork', first: 0, second: 0, number: writer.forks++ })
