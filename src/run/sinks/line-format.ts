import type { Task } from '../../base/core/environment.ts'
import type { ExportGroup, Format, FormatOptions, FormatWriter } from './format.ts'
import { makeJsonBytes, writeJson } from './json-bytes.ts'

/** What a format of lines is made from. */
export interface LineFormat
  extends Pick<
    Format,
    'name' | 'summary' | 'carries' | 'training' | 'comparesRewards' | 'loading'
  > {
  /** Gives, for one export, the function that turns a group into the objects of its lines. */
  start(options: FormatOptions): ToLines
}

/** The lines of a group; `end` is called after the last. */
export interface ToLines {
  (group: ExportGroup): Iterable<object>
  end?(): void
}

/** A format of one JSON object per line. */
export function lineFormat({ start, ...rest }: LineFormat): Format {
  return {
    ...rest,
    open(output, options): FormatWriter {
      const toLines = start(options)
      const json = makeJsonBytes()
      return {
        async write(group) {
          let count = 0
          for (const line of toLines(group)) {
            writeJson(json, line)
            json.raw('\n')
            // Copied: the bytes are written over by the next line.
            await output.write(new Uint8Array(json.take()))
            count++
          }
          return count
        },
        end: async () => toLines.end?.(),
      }
    },
  }
}

/** The reference answer of a task, if it has one. */
export function answerOf({ data }: Task): string | null {
  if (typeof data !== 'object' || data === null || !('answer' in data)) return null
  const { answer } = data
  return typeof answer === 'string' ? answer : answer === undefined ? null : JSON.stringify(answer)
}
