import { z } from 'zod'
import { rowForms } from '../../base/core/row.ts'
import { cutsOf } from '../../engine/policies/schemes.ts'
import { formatNamed } from '../sinks/formats/registry.ts'
import { openRunReader, type RunWriter, type StoredGroup } from '../store/store.ts'
import { lossOf, type OpenExport, openExport } from './export.ts'
import { makeLiveWeighing, weightingOf } from './weighing.ts'

const sinkSettings = z.array(
  z.strictObject({
    to: z.string(),
    out: z.string(),
    rows: z.enum(rowForms).optional(),
    loss: z.string().optional(),
  }),
)

/** The run that live sinks belong to. */
export interface SinkRun {
  readonly out: string
  readonly config: Readonly<Record<string, unknown>>
  /** Whether the folder already holds groups. */
  readonly resumes?: boolean
  /** The seats of its attempts. */
  readonly seats?: readonly string[]
}

/**
 * A writer that also exports every group it stores, as the setting `sinks` says. Groups come in the
 * order in which they were finished; those of an interrupted run are written again first, so that
 * the files of a resumed run are whole. A group is in the journal before any sink sees it.
 */
export async function withSinks(writer: RunWriter, run: SinkRun): Promise<RunWriter> {
  const files: OpenExport[] = []
  try {
    for (const { to, out, rows, loss } of sinkSettings.parse(run.config.sinks ?? [])) {
      const asked = { out, run: run.out, ...(rows && { rows }), loss: loss ?? lossOf(run.config) }
      const format = formatNamed(to)
      const weighing = makeLiveWeighing(run.config, { format })
      const weighting = weightingOf(run.config)
      const cuts = cutsOf(run.config.policy)
      const own = { ...asked, weighting, weighing, cuts, appears: 'growing' } as const
      files.push(await openExport(format, own))
    }
    if (files.length === 0) return writer
    return await exporting(writer, files, run)
  } catch (error) {
    await writer[Symbol.asyncDispose]()
    throw error
  }
}

async function exporting(
  writer: RunWriter,
  files: readonly OpenExport[],
  run: SinkRun,
): Promise<RunWriter> {
  let last: Promise<void> = Promise.resolve()
  /** One group at a time: formats write rows in sequence. */
  const writeAll = (group: StoredGroup): Promise<void> => {
    last = last.then(async () => {
      for (const file of files) await file.write(group)
    })
    return last
  }
  if (run.resumes) await writeFinished(run, writeAll)
  let isEnded = false
  /** Ends the files, which are given up if one of them failed before: whoever wrote has been told. */
  async function endFiles(): Promise<void> {
    if (isEnded) return
    isEnded = true
    const isWhole = await last.then(
      () => true,
      () => false,
    )
    for (const file of files) await (isWhole ? file.end() : file.discard())
  }
  return {
    ...writer,
    async writeGroup(group, task, order) {
      await writer.writeGroup(group, task, order)
      await writeAll({ group, task, order })
    },
    async writeSent(sent) {
      await writer.writeSent(sent)
      if (sent.group) await writeAll(sent.group.stored)
    },
    async complete() {
      await endFiles()
      await writer.complete()
    },
    async [Symbol.asyncDispose]() {
      try {
        await endFiles()
      } finally {
        await writer[Symbol.asyncDispose]()
      }
    },
  }
}

async function writeFinished(
  { out, seats }: SinkRun,
  write: (group: StoredGroup) => Promise<void>,
): Promise<void> {
  const reader = await openRunReader(out, seats)
  try {
    for await (const group of reader.groups()) await write(group)
  } finally {
    await reader[Symbol.asyncDispose]()
  }
}
