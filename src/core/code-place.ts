/** The folder of this program's own code, as sources or as built; bundles that hide it have none. */
function home(): string {
  return import.meta.url ? new URL('../', import.meta.url).href : 'file://'
}

/** How deep a stack is looked into: what lies further up called us, and did not fail. */
const depth = 30

/**
 * The file and line in which the user's own code threw an error: the first place of its stack outside
 * packages and the runtime. Nothing where our code threw it.
 */
export function placeInUsersCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const lines = (error.stack ?? '').split('\n').filter(line => /^\s+at /.test(line))
  for (const line of lines.slice(0, depth)) {
    const place = placeOf(line)
    if (place === undefined) continue
    if (toAddress(place.file).startsWith(home())) return undefined
    if (!/[\\/]node_modules[\\/]/.test(place.file)) return `${fromHere(place.file)}:${place.line}`
  }
  return undefined
}

/** `at name (file:line:column)` or `at file:line:column`; nothing for places without a file. */
function placeOf(line: string): { readonly file: string; readonly line: string } | undefined {
  const found = /(?:\(|at (?:async )?)((?:file:\/\/)?(?:\/|[A-Za-z]:[\\/]).*?):(\d+):\d+\)?$/.exec(
    line,
  )
  return found ? { file: found[1]!, line: found[2]! } : undefined
}

function toAddress(file: string): string {
  return file.startsWith('file://') ? file : `file://${file}`
}

/** A path as people write it: from the working folder where it lies in it. */
function fromHere(file: string): string {
  const path = decodeURIComponent(file.replace(/^file:\/\//, ''))
  const folder = `${process.cwd()}/`
  return path.startsWith(folder) ? path.slice(folder.length) : path
}
