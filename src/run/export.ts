import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { finished } from 'node:stream/promises'
import { UnknownPartError } from '../core/part-name.ts'
import { toJsonl } from '../sinks/jsonl.ts'
import { readManifest } from './run-folder.ts'
import { openRunReader } from './store.ts'

/** What an export is asked for. */
export interface ExportOptions {
  /** The format. */
  readonly to: string
  /** The file to write. */
  readonly out: string
  /** Trajectories to write besides those that are trained on. */
  readonly include?: readonly ('failed' | 'filtered')[]
  /** Also write what depends on clocks and servers. */
  readonly volatile?: boolean
}

/** What was written, and what the format could not carry. */
export interface Exported {
  readonly rows: number
  readonly lost: readonly string[]
  /** Trajectories that were left out, by reason. */
  readonly leftOut: Readonly<Record<string, number>>
}

/** Writes a run as training rows, in canonical order: task, member, row. */
export async function exportRun(run: string, options: ExportOptions): Promise<Exported> {
  if (options.to !== 'jsonl') throw new UnknownPartError('export format', options.to, ['jsonl'])
  await readManifest(run)
  const include = new Set(options.include)
  const reader = await openRunReader(run)
  try {
    await mkdir(dirname(resolve(options.out)), { recursive: true })
    const stream = createWriteStream(options.out)
    const leftOut: Record<string, number> = {}
    let rows = 0
    for await (const { group } of reader.groups()) {
      const text = toJsonl(group, {
        run: basename(resolve(run)),
        volatile: options.volatile ?? false,
        include: { failed: include.has('failed'), filtered: include.has('filtered') },
      })
      rows += text === '' ? 0 : text.split('\n').length - 1
      if (!stream.write(text)) await once(stream, 'drain')
      if (!include.has('failed') && group.unscored.length > 0) {
        leftOut.failed = (leftOut.failed ?? 0) + group.unscored.length
      }
      const dropped = group.members.filter(member => member.dropped !== null).length
      if (!include.has('filtered') && dropped > 0)
        leftOut.filtered = (leftOut.filtered ?? 0) + dropped
    }
    stream.end()
    await finished(stream)
    return { rows, lost: [], leftOut }
  } finally {
    await reader[Symbol.asyncDispose]()
  }
}
