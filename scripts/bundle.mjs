// Joins the modules of both packages into the files that people load and start.
import { writeFileSync } from 'node:fs'
import { build } from 'esbuild'

const shared = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  logLevel: 'warning',
  logOverride: { 'import-is-undefined': 'error' },
}

/** What people load of this package, as its `exports` name it. */
export const entries = [
  'index',
  'environments',
  'policies',
  'rewards',
  'store',
  'testing',
  'tokens',
  'base/math/index',
]

/** What is started by its file and may share code with the rest. */
const programs = [
  'cli/main',
  'doors/cluster/server-process',
  'engine/policies/transport/thread/worker',
  'cell-thread',
  'learn/model/engine/worker',
  'rolling-thread',
]

/** Read as a text and run without any other file. */
const alone = 'worlds/interpreter/program'

/** The rooms of `@espalier/text` that others may load. */
export const textEntries = [
  'index',
  ...[
    'chat',
    'gguf',
    'images',
    'jinja',
    'parsers',
    'patterns',
    'python',
    'signals',
    'tokenizers',
  ].map(room => `${room}/index`),
]

const from = (folder, names) => names.map(name => `${folder}/${name}.ts`)

export async function bundleText() {
  const folder = 'packages/text/src'
  await build({
    ...shared,
    entryPoints: from(folder, textEntries),
    outbase: folder,
    outdir: 'packages/text/dist',
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
  })
}

export async function bundle() {
  await build({
    ...shared,
    entryPoints: from('src', [...entries, ...programs]),
    outbase: 'src',
    outdir: 'dist',
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    // The package beside this one is installed with it, not copied into it.
    tsconfigRaw: {},
  })
  await build({ ...shared, entryPoints: from('src', [alone]), outbase: 'src', outdir: 'dist' })
  for (const entry of entries) writeFileSync(`dist/${entry}.cjs`, requiring(entry))
}

/** Entries for CommonJS: the same modules, required from within the package, where Node does not warn. */
const requiring = entry => `module.exports = require('./${entry.split('/').at(-1)}.js')\n`
