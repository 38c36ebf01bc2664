import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'

/** A module of ours with all that it imports, as one file for processes that know no TypeScript. */
export async function bundled(source: URL): Promise<string> {
  const outfile = join(mkdtempSync(join(tmpdir(), 'espalier-bundled-')), 'module.mjs')
  await build({
    entryPoints: [source.pathname],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'silent',
  })
  return outfile
}
