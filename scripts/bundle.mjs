// Joins the modules of `dist/` into a few files: a thousand of them take most of a second to load. The
// single modules stay beside them for the programs that are started by their file.
import { readFileSync, rmSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { build } from 'esbuild'

const dist = resolve('dist')

/** What people load: they and all that several of them share are made anew. */
const doors = ['index.js', 'testing.js', 'math/index.js', 'cli/main.js']

/** The folder `dist/`, seen from every file that is made: some lie in folders of it, some do not. */
const whereWeAre =
  'const espalierFolder = import.meta.url.replace(/\\/(?:(?:chunks|cli|math)\\/)?[^/]*$/, "/");'

/** Modules find their files beside themselves, wherever they were joined into. */
const placed = {
  name: 'placed',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      if (!path.startsWith(dist)) return undefined
      const place = JSON.stringify(relative(dist, path).replaceAll('\\', '/'))
      const code = readFileSync(path, 'utf8')
      return { contents: code.replaceAll('import.meta.url', `(espalierFolder + ${place})`) }
    })
  },
}

export async function bundle() {
  await build({
    entryPoints: doors.map(door => `dist/${door}`),
    outdir: 'dist',
    outbase: 'dist',
    allowOverwrite: true,
    bundle: true,
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    banner: { js: whereWeAre },
    plugins: [placed],
    logLevel: 'warning',
  })
  for (const door of doors) rmSync(`dist/${door}.map`, { force: true })
}
