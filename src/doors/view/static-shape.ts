import type { Curves, Facets, GroupAnswer, GroupRow, RunAnswer } from './answers.ts'
import type { TokenPage, TrajectoryAnswer, TreeAnswer } from './trajectory-shapes.ts'

/** What a file holds of a run besides its groups' contents. */
export interface StaticRun {
  readonly run: RunAnswer
  readonly curves: Curves
  readonly facets: Facets
  readonly rows: readonly GroupRow[]
  /** The parcel that holds each group. */
  readonly parcels: Readonly<Record<string, number>>
  /** The group of each tree inside. */
  readonly groups: Readonly<Record<string, string>>
}

/** The contents of one group, as a file holds them. */
export interface StaticGroup {
  readonly group: GroupAnswer
  /** What its members saw, as data URLs by the reference in their place. */
  readonly images: TrajectoryAnswer['images']
  readonly trajectories: Readonly<Record<string, StaticTrajectory>>
  readonly trees: Readonly<Record<string, TreeAnswer>>
}

/** A trajectory with the tokens of each of its paths. */
export interface StaticTrajectory {
  readonly answer: Omit<TrajectoryAnswer, 'images'>
  readonly tokens: readonly TokenPage[]
}
