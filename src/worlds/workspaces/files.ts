import type { Call } from '../../base/core/call.ts'
import type { Finished } from '../sandboxes/run.ts'
import type { Workspace } from './contract.ts'

/**
 * Files are read and written by commands inside, where a symbolic link out of the workspace leads
 * nowhere.
 */
const scripts = {
  read: 'cat -- "$1"',
  piece: 'tail -c "+$2" -- "$1" | head -c "$3" | base64',
  write: 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"',
  list: 'cd -- "$1" && find . -mindepth 1 -maxdepth "$2" -not -path "./.git/*" | LC_ALL=C sort | head -n "$3"',
  size: 'du -sm "$@" 2>/dev/null | awk \'{ sum += $1 } END { print sum + 0 }\'',
}

/** Why a file operation failed: no such file, a folder, no space. */
export class FileProblem extends Error {
  override name = 'FileProblem'
}

/** The text of a file. */
export async function readFileIn(workspace: Workspace, path: string, call: Call): Promise<string> {
  return outputOf(await script(workspace, scripts.read, [path], call))
}

/** Most bytes of a file that is read whole. */
const mostWhole = 2 ** 20

/**
 * The text of a file with nothing left out, to be changed and written again: what is longer than the
 * output of one command is read piece by piece. Throws for a file that is not text in UTF-8.
 */
export async function readWholeFileIn(
  workspace: Workspace,
  path: string,
  { outputBytes, ...call }: Call & { readonly outputBytes: number },
): Promise<string> {
  const read = await script(workspace, scripts.read, [path], call)
  const text = outputOf(read)
  if (read.cut === 0 && !text.includes('\ufffd')) return text
  const size = Buffer.byteLength(read.output) + read.cut
  if (size > mostWhole) throw new FileProblem(`${path} has more than ${mostWhole} bytes`)
  // A line of base64 has 76 characters for 57 bytes.
  const length = 57 * Math.max(1, Math.floor(outputBytes / 77))
  const pieces: Buffer[] = []
  for (let at = 1; ; at += length) {
    const words = [path, String(at), String(length)]
    const { output, cut } = await script(workspace, scripts.piece, words, call)
    if (cut > 0) throw new FileProblem(`${path} is too long to be read whole`)
    const piece = Buffer.from(output, 'base64')
    if (piece.length === 0) return decoded(Buffer.concat(pieces), path)
    pieces.push(piece)
  }
}

function decoded(bytes: Buffer, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new FileProblem(`${path} is not text in UTF-8`)
  }
}

/** Writes a file, with the folders it lies in. */
export async function writeFileIn(
  workspace: Workspace,
  { path, text }: { readonly path: string; readonly text: string },
  call: Call,
): Promise<void> {
  outputOf(await script(workspace, scripts.write, [path], { ...call, input: text }))
}

/** Most files and folders of a list. */
const mostListed = 500

/** The files and folders below one, two levels deep; the last line says if there are more. */
export async function listFilesIn(workspace: Workspace, path: string, call: Call): Promise<string> {
  const words = [path, '2', String(mostListed + 1)]
  const text = outputOf(await script(workspace, scripts.list, words, call))
  const lines = text.split('\n')
  // Behind the last line stands nothing, or how much was cut off already.
  if (lines.length <= mostListed + 1) return text
  return `${lines.slice(0, mostListed).join('\n')}\n[only the first ${mostListed} are shown]\n`
}

/** Mebibytes that the files in a folder take. */
export async function sizeIn(workspace: Workspace, path: string, call: Call): Promise<number> {
  return Number((await script(workspace, scripts.size, [path], call)).output.trim())
}

function script(
  workspace: Workspace,
  text: string,
  words: readonly string[],
  call: Call & { readonly input?: string },
): Promise<Finished> {
  return workspace.run(['/bin/sh', '-c', text, 'sh', ...words], call)
}

function outputOf({ code, end, output, complaints, cut }: Finished): string {
  if (end === 'exited' && code === 0) {
    return cut > 0 ? `${output}\n[${cut} more bytes not shown]` : output
  }
  const why = complaints
    .trim()
    .split('\n')
    .at(-1)
    ?.replace(/^.*?: /, '')
  throw new FileProblem(end === 'exited' ? why || `it ended with ${code}` : 'it took too long')
}
