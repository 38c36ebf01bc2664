import type { Task } from '../../base/core/environment.ts'
import type { Group } from '../../base/core/group.ts'
import type { ImagePlace } from '../../base/core/image.ts'
import type { RowForm } from '../../base/core/row.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import type { Feature } from './features.ts'
import type { Training } from './forms.ts'
import type { LossReport } from './lost.ts'

/** Where a format writes; a promise asks the writer to wait. */
export interface Output {
  write(chunk: string | Uint8Array): void | Promise<void>
}

/** A group to write: only the members that were selected are in it. */
export interface ExportGroup {
  readonly group: Group
  readonly task: Task
  /** The place of its task in the run's order. */
  readonly order: number
}

/** What a manifest says of a run, for formats that have a place for it. */
export interface RunAbout {
  readonly started: string
  readonly environment?: string
  readonly policy?: string
}

/** What every format gets besides the groups. */
export interface FormatOptions {
  /** The name of the run. */
  readonly run: string
  /** What its manifest says of it, if there is one. */
  readonly about?: RunAbout | undefined
  /** How the trajectories of one tree share their tokens. */
  readonly weighting: LeafWeighting
  /** Which rows trees become. */
  readonly form: RowForm
  /** The loss they will be trained with, by our name of it. */
  readonly loss: string
  /** In which order the sampling policy cuts, if that is known. */
  readonly cuts?: readonly string[] | undefined
  /** Also write what depends on clocks and servers. */
  readonly volatile: boolean
  /** Where an image lies that a row shows. @default its name in the run's folder of images */
  readonly imageFile?: (image: ImagePlace) => string
  /** Where the format counts what it cannot carry. */
  readonly lost: LossReport
}

/** Writes groups in one format, one after the other. */
export interface FormatWriter {
  /** Gives the number of rows it wrote for the group; throws `RefusedError` if it cannot. */
  write(group: ExportGroup): Promise<number>
  /** Writes what belongs at the end of the file. */
  end(): Promise<void>
}

/** A file format that some trainer or tool reads. */
export interface Format {
  readonly name: string
  /** Who reads it, for people who choose one. */
  readonly summary: string
  /** What it has a place for; the rest is counted as lost. */
  readonly carries: readonly Feature[]
  /** How its trainer reads rows; absent if no policy loss is computed from them. */
  readonly training?: Training
  /** Whether its trainer compares rewards itself; then members that were dropped from the loss only are written too. */
  readonly comparesRewards?: boolean
  /** Whether a file of it is one whole, which cannot be read line by line while it grows. @default false */
  readonly isWhole?: boolean
  open(output: Output, options: FormatOptions): FormatWriter
  /** Lines of code that load the file in its trainer. */
  loading(file: string): readonly string[]
}

/** Thrown for a run that a format cannot carry without changing what is trained. */
export class RefusedError extends Error {
  override name = 'RefusedError'

  constructor(format: string, reason: string, instead: string) {
    super(`${format} cannot carry this run: ${reason}. ${instead}`)
  }
}
