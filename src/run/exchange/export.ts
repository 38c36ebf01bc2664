import { basename, resolve } from 'node:path'
import type { Group } from '../../base/core/group.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { RowForm } from '../../base/core/row.ts'
import { untemperedTokens } from '../../base/core/tree.ts'
import type { LeafWeighting } from '../../base/math/credit.ts'
import { lossKind, lossNames } from '../../base/math/registry.ts'
import { cutsOf } from '../../engine/policies/schemes.ts'
import { refuseExperts, withoutExperts } from '../sinks/experts.ts'
import { countUncarried } from '../sinks/features.ts'
import {
  type Format,
  type FormatOptions,
  type FormatWriter,
  RefusedError,
  type RunAbout,
} from '../sinks/format.ts'
import { formatNamed } from '../sinks/formats/registry.ts'
import { countTokens, type FormOptions, type FormTokens } from '../sinks/forms.ts'
import { refuseImages } from '../sinks/images.ts'
import { type LossReport, type Lost, makeLossReport } from '../sinks/lost.ts'
import { makeSelection, type Selection } from '../sinks/selection.ts'
import { makeImageCopies } from '../store/images/copies.ts'
import { type RunManifest, readManifest } from '../store/run-folder.ts'
import { openRunReader, type StoredGroup } from '../store/store.ts'
import { type Appearance, type OutputFile, openOutputFile, refuseForeign } from './output-file.ts'
import { makeWeighing, type Weighing, weightingOf } from './weighing.ts'

/** What to export, and how. */
export interface ExportOptions extends Selection {
  /** The format. */
  readonly to: string
  /** The file to write. */
  readonly out: string
  /** Each sampled token once, or every trajectory's full paths. @default what is right for the format */
  readonly rows?: RowForm
  /** The loss the rows will be trained with. @default the run's */
  readonly loss?: string
  /** Importance weights of tokens, by name; several multiply. @default the run's */
  readonly importance?: readonly string[]
  /** Leaves out the routed experts that the policy reported. @default false */
  readonly withoutExperts?: boolean
  /** Also write what depends on clocks and servers. */
  readonly volatile?: boolean
  readonly signal?: AbortSignal
}

/** What was written, and what the format could not carry. */
export interface Exported {
  readonly rows: number
  readonly lost: readonly Lost[]
  /** What users of the file must know before training. */
  readonly notes: readonly string[]
  /** Which rows were written; absent if the format has no rows to train on. */
  readonly form?: WrittenForm
  /** Trajectories that were left out, by reason: failed, filtered, where, best. */
  readonly leftOut: Readonly<Record<string, number>>
  /** Lines of code that load the file in its trainer. */
  readonly loading: readonly string[]
}

/** The form of rows that were written, for which loss, and what it costs. */
export interface WrittenForm {
  readonly rows: RowForm
  /** Why, if it is the format's own choice. */
  readonly because?: string
  readonly loss: string
  /** Tokens of the rows, context included. */
  readonly tokens: number
  /** Tokens in the loss. */
  readonly trained: number
  /** Tokens that would be in the loss if each sampled token were trained once. */
  readonly once: number
}

/**
 * Writes a run as training rows, in canonical order: task, member, row. The file appears when it is
 * whole; a run that the format refuses leaves none.
 */
export async function exportRun(run: string, options: ExportOptions): Promise<Exported> {
  const { to, out } = options
  if (typeof out !== 'string' || out === '')
    throw new SettingError(`out is missing: name the file that ${to} is written to`)
  const format = formatNamed(to)
  const manifest = await readManifest(run)
  const reader = await openRunReader(run)
  try {
    const { config } = manifest
    const loss = options.loss ?? lossOf(config)
    const weighting = weightingOf(config)
    const { importance } = options
    const weighing = await makeWeighing(reader, config, { format, importance })
    const cuts = cutsOf(config.policy)
    const own = {
      ...options,
      loss,
      run,
      weighting,
      weighing,
      cuts,
      about: aboutOf(manifest),
      appears: 'whole',
    } as const
    const written = await exportWhole(await openExport(format, own), async file => {
      for await (const stored of reader.groups()) {
        options.signal?.throwIfAborted()
        await file.write(stored)
      }
    })
    return { ...written, loading: format.loading(out) }
  } finally {
    await reader[Symbol.asyncDispose]()
  }
}

function aboutOf({ started, config }: RunManifest): RunAbout {
  const { environment, policy } = config
  return {
    started,
    ...(environment !== undefined && { environment: String(environment) }),
    ...(policy !== undefined && { policy: String(policy) }),
  }
}

/** Writes into an export and ends it; if that fails, it leaves no file. */
export async function exportWhole(
  file: OpenExport,
  write: (file: OpenExport) => Promise<void>,
): Promise<Omit<Exported, 'loading'>> {
  try {
    await write(file)
    return await file.end()
  } catch (error) {
    await file.discard()
    throw error
  }
}

/** A file that groups are exported into, one after the other. */
export interface OpenExport {
  write(group: StoredGroup): Promise<void>
  end(): Promise<Omit<Exported, 'loading'>>
  /** Gives up; a file that should have appeared whole leaves nothing. */
  discard(): Promise<void>
}

/** Opens a file in a format; groups are selected before they are written. */
export async function openExport(
  format: Format,
  options: Omit<ExportOptions, 'to'> & {
    readonly run: string
    readonly weighting: LeafWeighting
    readonly appears: Appearance
    readonly about?: FormatOptions['about']
    /** In which order the sampling policy cuts, if that is known. */
    readonly cuts?: FormatOptions['cuts']
    /** How groups are weighed before they are written. @default unchanged */
    readonly weighing?: Weighing
  },
): Promise<OpenExport> {
  const { comparesRewards = false, training } = format
  const { weighting, weighing, loss = 'ppo' } = options
  const form = formOf(format, options.rows)
  lossKind(loss)
  const select = makeSelection(options, { comparesRewards })
  const lost = makeLossReport()
  const images = makeImageCopies(options)
  const known = options.withoutExperts ? withoutExperts : (group: Group): Group => group
  for (const note of weighing?.notes ?? []) lost.note(note)
  const { output, writer } = await makeWriter(format, options, {
    run: basename(resolve(options.run)),
    about: options.about,
    weighting,
    form,
    loss,
    volatile: options.volatile ?? false,
    cuts: options.cuts,
    imageFile: images.fileOf,
    lost,
  })
  const leftOut: Record<string, number> = {}
  const cost = { tokens: 0, trained: 0, once: 0, shared: 0 }
  let rows = 0
  let added = 0
  return {
    discard: () => output.discard(),
    async write({ group, task, order }) {
      const selected = select(weighing?.weigh(known(group)) ?? known(group))
      refuseExperts(format, selected.group)
      refuseImages(format, { group: selected.group, task, order })
      for (const [reason, count] of Object.entries(selected.leftOut)) {
        leftOut[reason] = (leftOut[reason] ?? 0) + count
      }
      rows += await writer.write({ group: selected.group, task, order })
      await images.copy()
      countUncarried(selected.group, format.carries, lost)
      noteBasis(selected.group, lost)
      added += countAdded(selected.group)
      if (!training) return
      const { cuts = false } = training
      const counted = countTokens(selected.group, { weighting, form, cuts })
      for (const name of tokenCounts) cost[name] += counted[name]
    },
    async end() {
      await writer.end()
      await output.close()
      noteForm({ format, form, cost, leftOut, added }, lost)
      const { because } = training ?? {}
      return {
        rows,
        lost: lost.entries(),
        notes: lost.notes(),
        leftOut,
        ...(training && {
          form: {
            rows: form,
            ...(options.rows === undefined && { because: because! }),
            loss,
            tokens: cost.tokens,
            trained: cost.trained,
            once: cost.once,
          },
        }),
      }
    },
  }
}

/** Opens the file and what writes into it; a format that refuses leaves no file. */
async function makeWriter(
  format: Format,
  { out, appears }: { readonly out: string; readonly appears: Appearance },
  options: FormatOptions,
): Promise<{ readonly output: OutputFile; readonly writer: FormatWriter }> {
  refuseForeign('--out', out, 'export')
  const output = await openOutputFile(out, appears)
  try {
    return { output, writer: format.open(output, options) }
  } catch (error) {
    await output.discard()
    throw error
  }
}

/** Notes log-probabilities that differ from what a trainer computes. */
function noteBasis(group: Group, lost: LossReport): void {
  const trees = new Set([...group.members, ...group.unscored].map(({ tree }) => tree))
  for (const problem of [...trees].flatMap(tree => [...untemperedTokens(tree).keys()])) {
    lost.note(
      `log-probabilities are not the tempered ones (${problem}): recompute them to train with ratios`,
    )
  }
}

/** The form that was asked for, or the format's own. */
function formOf({ name, training }: Format, asked: RowForm | undefined): RowForm {
  if (!training && asked !== undefined) {
    throw new RefusedError(
      name,
      'it has no rows that a policy loss is computed from',
      'Leave out --rows.',
    )
  }
  return asked ?? training?.form ?? 'once'
}

const tokenCounts = ['tokens', 'trained', 'once', 'shared'] as const

/** Notes what the form and the selection change for training. */
function noteForm(
  {
    format,
    form,
    cost,
    leftOut,
    added,
  }: Pick<FormOptions, 'form'> & {
    readonly format: Format
    readonly cost: FormTokens
    readonly leftOut: Readonly<Record<string, number>>
    readonly added: number
  },
  lost: LossReport,
): void {
  const { comparesRewards, training } = format
  if (training && form === 'once' && training.sequence !== 'reader' && cost.shared > 0) {
    lost.note(
      `${cost.shared} tokens are shared by trajectories and trained once with their mean advantage: exact while ratios are 1 (--rows paths is exact at every ratio)`,
    )
  }
  const chosen = (leftOut.where ?? 0) + (leftOut.best ?? 0)
  if (comparesRewards && chosen > 0) {
    lost.note(
      `a trainer that compares rewards itself does not see the ${chosen} trajectories that --where and --best left out`,
    )
  }
  if (comparesRewards && added > 0) {
    lost.note(
      `a trainer that compares rewards itself also compares the ${added} trajectories that --include added and the run did not, those without a reward as 0 or none`,
    )
  }
}

/** Trajectories of a group that the run itself left out of its comparison of rewards. */
function countAdded({ members, unscored }: Group): number {
  return (
    unscored.length +
    members.filter(({ dropped }) => dropped?.from === 'loss-and-statistics').length
  )
}

/** The loss a run was set to learn with. */
export function lossOf(config: Readonly<Record<string, unknown>>): string {
  const name = typeof config.loss === 'string' ? config.loss.split(':')[0]! : 'ppo'
  return lossNames.find(each => each === name) ?? 'ppo'
}
