/** A figure that both sides of a line give, and by how much we promise to beat the peer. */
export interface Measure {
  /** Its key in what the programs print. */
  readonly figure: string
  readonly unit: string
  readonly better: 'more' | 'less'
  /** How many times better than the peer ours must be; without it the ratio is only printed. */
  readonly target?: number
}

/** A program that prints the figures of one side, given the work as JSON on its standard input. */
export interface Side {
  readonly name: string
  /** A file of `ours/` (TypeScript) or of `theirs/` (Python); of several, each prints some of the figures. */
  readonly program: string | readonly string[]
  /** The Python that runs it, where it is not that of all others. */
  readonly python?: string
  /** How many times better than this one ours must be, where it is not what the measure says. */
  readonly target?: number
}

/** The same work done by us and by others. */
export interface Line {
  readonly name: string
  readonly measures: readonly Measure[]
  readonly work: object
  /** What the fixed server answers to every request; its address is added to the work as `url`. */
  readonly answer?: object
  readonly peers: readonly Side[]
  readonly ours: Side['program']
}

/** What a side printed: its figures, and the version of what was measured. */
export interface Printed {
  readonly figures: Readonly<Record<string, number>>
  readonly version?: string
}

/** A side's turns: one entry per turn, or why there is none. */
export type Turns = readonly Printed[] | { readonly missing: string }

/** One row of the table. */
export interface Comparison {
  readonly line: string
  readonly measure: Measure
  readonly peer: string
  readonly version: string
  readonly ours: Spread
  readonly theirs: Spread
  /** How many times better ours is, turn by turn. */
  readonly ratio: Spread
  readonly reached: boolean
}

/** The median of some figures and their range. */
export interface Spread {
  readonly least: number
  readonly median: number
  readonly most: number
}

export function spreadOf(figures: readonly number[]): Spread {
  const sorted = [...figures].sort((left, right) => left - right)
  const at = (index: number): number => sorted[index] ?? Number.NaN
  const middle = sorted.length >> 1
  return {
    least: at(0),
    median: sorted.length % 2 === 1 ? at(middle) : (at(middle - 1) + at(middle)) / 2,
    most: at(sorted.length - 1),
  }
}

/** The figures of both sides, by turn: the n-th of ours was taken just before the n-th of theirs. */
export interface Figures {
  readonly ours: readonly number[]
  readonly theirs: readonly number[]
}

/**
 * How both sides did, how many times better ours is, and whether that is enough. Ratios are those of single turns: a
 * machine's speed changes from minute to minute, and both sides of a turn have the same minutes.
 */
export function judge(
  { better, target = 0 }: Measure,
  { ours, theirs }: Figures,
): Pick<Comparison, 'ours' | 'theirs' | 'ratio' | 'reached'> {
  const ratios = ours.map((own, turn) => {
    const other = theirs[turn] ?? Number.NaN
    return better === 'more' ? own / other : other / own
  })
  const ratio = spreadOf(ratios)
  const reached = ratio.median >= target
  return { ours: spreadOf(ours), theirs: spreadOf(theirs), ratio, reached }
}

/** Compares one figure of both sides over all turns. */
export function compare(
  { name }: Line,
  figure: Measure,
  sides: { readonly ours: readonly Printed[]; readonly peer: Side; theirs: readonly Printed[] },
): Comparison {
  const figures = (turns: readonly Printed[]): readonly number[] =>
    turns.map(({ figures }) => figures[figure.figure] ?? Number.NaN)
  const { peer } = sides
  const measure = { ...figure, ...(peer.target !== undefined && { target: peer.target }) }
  return {
    ...{ line: name, measure, peer: peer.name, version: sides.theirs[0]?.version ?? '' },
    ...judge(measure, { ours: figures(sides.ours), theirs: figures(sides.theirs) }),
  }
}
