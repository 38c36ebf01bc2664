import { z } from 'zod'
import { makeLane } from '../../../base/core/lane.ts'
import { late } from '../../../engine/environments/late.ts'
import type { Inside } from '../inside/inside.ts'
import { RefusedCall } from './json-rpc.ts'
import { runToEnd } from './run-to-end.ts'

/** Most files that are read or written at one time: each may fill memory. */
const mostAtOnce = 8

/** Most characters of a file that is read. */
const mostRead = 8 * 2 ** 20

const schemas = late(() => ({
  read: z.object({
    path: z.string(),
    line: z.int().min(1).nullish(),
    limit: z.int().min(0).nullish(),
  }),
  write: z.object({ path: z.string(), content: z.string() }),
}))

/**
 * Ends with 4 unless the path, with all links followed, lies in the folder. It runs in the sandbox itself, whose
 * walls hold whatever becomes of a path while it is looked at.
 */
const within = `
root=$(readlink -f -- "$1") || exit 3
home=$(readlink -f -- "$(dirname -- "$2")") || exit 3
real=$(readlink -f -- "$2" || printf '%s/%s' "$home" "$(basename -- "$2")")
case "$real/" in "$root"/*) ;; *) exit 4 ;; esac
`

/** The file methods of the Agent Client Protocol, in the folder that is worked in and nowhere else. */
export function makeFiles(inside: Inside, folder: string) {
  const lane = makeLane('files', mostAtOnce)
  const call = { signal: new AbortController().signal }
  const act = async (script: string, path: string, input?: string): Promise<string> => {
    const words = ['/bin/sh', '-c', `${within}${script}`, 'sh', folder, path]
    const { code, output, complaints } = await lane.run(call, () =>
      runToEnd(inside, { words, folder }, { input, most: mostRead }),
    )
    if (code === 0) return output
    if (code === 4) throw new RefusedCall(-32602, `${path} lies outside ${folder}`)
    throw new RefusedCall(
      -32002,
      `${path}: ${complaints.trim().slice(-300) || 'there is no such file'}`,
    )
  }
  return {
    'fs/read_text_file': async (params: unknown) => {
      const { path, line, limit } = parse(schemas().read, params)
      const content = await act('cat -- "$real"', path)
      return {
        content:
          line == null && limit == null ? content : linesOf(content, line ?? 1, limit ?? undefined),
      }
    },
    'fs/write_text_file': async (params: unknown) => {
      const { path, content } = parse(schemas().write, params)
      await act('cat > "$real"', path, content)
      return {}
    },
  }
}

function linesOf(content: string, from: number, count: number | undefined): string {
  const to = count === undefined ? undefined : from - 1 + count
  return content
    .split('\n')
    .slice(from - 1, to)
    .join('\n')
}

/** Parameters by their schema; what is wrong is told to whoever sent them. */
export function parse<T>(schema: z.ZodType<T>, params: unknown): T {
  const read = schema.safeParse(params)
  if (read.success) return read.data
  throw new RefusedCall(-32602, z.prettifyError(read.error).replaceAll('\n', ' ').slice(0, 300))
}
