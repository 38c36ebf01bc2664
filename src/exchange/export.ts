import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { finished } from 'node:stream/promises'
import { type LeafWeighting, leafWeightings } from '../core/credit.ts'
import { countUncarried } from '../sinks/features.ts'
import type { Format, FormatWriter, Output } from '../sinks/format.ts'
import { formatNamed } from '../sinks/formats/registry.ts'
import { type Lost, openLossReport } from '../sinks/lost.ts'
import { openSelection, type Selection } from '../sinks/selection.ts'
import { readManifest } from '../store/run-folder.ts'
import { openRunReader, type StoredGroup } from '../store/store.ts'

/** What an export is asked for. */
export interface ExportOptions extends Selection {
  /** The format. */
  readonly to: string
  /** The file to write. */
  readonly out: string
  /** Also write what depends on clocks and servers. */
  readonly volatile?: boolean
  readonly signal?: AbortSignal
}

/** What was written, and what the format could not carry. */
export interface Exported {
  readonly rows: number
  readonly lost: readonly Lost[]
  /** Trajectories that were left out, by reason: failed, filtered, where, best. */
  readonly leftOut: Readonly<Record<string, number>>
  /** The lines that load the file where it is read. */
  readonly loading: readonly string[]
}

/**
 * Writes a run as training rows, in canonical order: task, member, row. The file appears when it is
 * whole; a run that the format refuses leaves none.
 */
export async function exportRun(run: string, options: ExportOptions): Promise<Exported> {
  const format = formatNamed(options.to)
  const manifest = await readManifest(run)
  const reader = await openRunReader(run)
  const partial = `${options.out}.partial`
  try {
    const weighting = weightingOf(manifest.config)
    const file = await openExport(format, { ...options, out: partial, run, weighting })
    try {
      for await (const group of reader.groups()) {
        options.signal?.throwIfAborted()
        await file.write(group)
      }
    } catch (error) {
      await file.end().catch(() => undefined)
      await rm(partial, { force: true })
      throw error
    }
    const written = await file.end()
    await rename(partial, options.out)
    return { ...written, loading: format.loading(options.out) }
  } finally {
    await reader[Symbol.asyncDispose]()
  }
}

/** A file that groups are exported into, one after the other. */
export interface OpenExport {
  write(group: StoredGroup): Promise<void>
  end(): Promise<Omit<Exported, 'loading'>>
}

/** Opens a file in a format; groups are selected before they are written. */
export async function openExport(
  format: Format,
  options: Omit<ExportOptions, 'to'> & {
    readonly run: string
    readonly weighting: LeafWeighting
  },
): Promise<OpenExport> {
  const select = openSelection(options)
  const lost = openLossReport()
  const output = await openFile(options.out)
  const writer: FormatWriter = format.open(output, {
    run: basename(resolve(options.run)),
    weighting: options.weighting,
    volatile: options.volatile ?? false,
    lost,
  })
  const leftOut: Record<string, number> = {}
  let rows = 0
  return {
    async write({ group, task, order }) {
      const selected = select(group)
      for (const [reason, count] of Object.entries(selected.leftOut)) {
        leftOut[reason] = (leftOut[reason] ?? 0) + count
      }
      rows += await writer.write({ group: selected.group, task, order })
      countUncarried(selected.group, format.carries, lost)
    },
    async end() {
      await writer.end()
      await output.close()
      return { rows, lost: lost.entries(), leftOut }
    },
  }
}

/** How the trees of a run share their tokens, by its settings. */
export function weightingOf(config: Readonly<Record<string, unknown>>): LeafWeighting {
  return leafWeightings.find(each => each === config.weighting) ?? 'uniform'
}

async function openFile(path: string): Promise<Output & { close(): Promise<void> }> {
  await mkdir(dirname(resolve(path)), { recursive: true })
  const stream = createWriteStream(path)
  let problem: Error | undefined
  stream.on('error', error => {
    problem = error
  })
  return {
    async write(chunk) {
      if (problem) throw problem
      if (!stream.write(chunk)) await once(stream, 'drain')
    },
    async close() {
      stream.end()
      await finished(stream)
    },
  }
}
