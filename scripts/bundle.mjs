// Joins the modules of Espalier into a few files of `dist/`: a thousand of them take most of a second to
// load. The single modules stay beside them for the programs that are started by their file.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { build } from 'esbuild'
import { findGroups } from './bundle-groups.mjs'
import { bundleClient, loadedLater, withJoinedClient } from './bundle-late.mjs'

const source = resolve('src')

/** The entries that people load; they and the code they share are rewritten. */
const doors = ['index', 'testing', 'math/index', 'cli/main', 'run/threads/worker']

/**
 * A module that knows where the folder `dist/` is: its own file lies there or in `chunks/`, or is an entry in a
 * subfolder. If somebody's bundle has copied our code elsewhere, also as CommonJS, it is the `dist/` of the
 * installed package.
 */
const folderModule = `import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
export const espalierFolder = (() => {
  const here = import.meta.url ?? pathToFileURL(__filename).href;
  const folder = here.replace(/\\/(?:(?:chunks|cli|math|run\\/threads)\\/)?[^/]*$/, "/");
  if (existsSync(new URL("model/wasm/plain.wasm", folder))) return folder;
  try {
    return new URL("./", pathToFileURL(createRequire(here).resolve("espalier"))).href;
  } catch {
    return folder;
  }
})();`

const folder = {
  name: 'folder',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^espalier:folder$/ }, ({ path }) => ({ path, namespace: 'folder' }))
    onLoad({ filter: /.*/, namespace: 'folder' }, () => ({ contents: folderModule }))
  },
}

const findsFolder = "import { espalierFolder } from 'espalier:folder'"

/** Makes joined modules look for their files where the original module was. */
function placed(groups) {
  return {
    name: 'placed',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/, namespace: 'file' }, ({ path }) => {
        if (!path.startsWith(source)) return undefined
        const built = relative(source, path).replaceAll('\\', '/').replace(/\.ts$/, '.js')
        const code = withJoinedClient(readFileSync(path, 'utf8'), built)
          .replaceAll('import.meta.url', `(espalierFolder + ${JSON.stringify(built)})`)
          // The same names in a form that allows tree shaking.
          .replace("import { z } from 'zod'", "import * as z from 'zod'")
        const known = code.includes('espalierFolder') ? findsFolder : ''
        const contents = built === 'index.js' ? openLater(code) : code
        const joined = doors.includes(built.replace(/\.js$/, '')) ? groups.importsFor(path) : ''
        return { contents: `${contents}\n${known}\n${joined}`, loader: 'ts' }
      })
    },
  }
}

/**
 * Functions that return a promise anyway are loaded on their first call: most programs call only a few.
 * The declarations are not made from this text and stay as they are.
 */
function openLater(index) {
  return index.replace(/^export \{([^}]*)\} from '([^']*)'$/gm, (whole, list, file) => {
    const names = list.split(',').map(name => name.trim())
    const values = names.filter(name => name !== '' && !name.startsWith('type '))
    const code = readFileSync(resolve('src', file), 'utf8')
    const kinds = values.map(name => kindIn(code, name))
    if (!kinds.every(kind => kind)) return whole
    return values.map((name, index) => lateFunction(name, { file, kind: kinds[index] })).join('\n')
  })
}

/** How a file declares an asynchronous function or generator of this name; undefined for others. */
function kindIn(code, name) {
  const [, star] = new RegExp(`^export async function(\\*?) ${name}\\b`, 'm').exec(code) ?? []
  return star === undefined ? undefined : { keyword: star ? 'yield*' : 'return', star }
}

function lateFunction(name, { file, kind: { keyword, star } }) {
  return `export async function${star} ${name}(...given) {
    ${keyword} (await import('${file}')).${name}(...given)
  }`
}

const options = {
  entryPoints: doors.map(door => `src/${door}.ts`),
  outdir: 'dist',
  outbase: 'src',
  allowOverwrite: true,
  bundle: true,
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  logLevel: 'warning',
  logOverride: { 'import-is-undefined': 'error' },
}

export async function bundle() {
  const none = { importsFor: () => '' }
  const first = await build({
    ...options,
    plugins: [placed(none), folder, loadedLater],
    metafile: true,
    write: false,
  })
  const groups = findGroups(first.metafile, {
    starts: ['src/index.ts', 'src/cli/commands/roll.ts', 'src/chat/renderer.ts'],
    doors: ['src/index.ts', 'src/math/index.ts', 'src/cli/main.ts'],
  })
  await build({ ...options, plugins: [placed(groups), folder, loadedLater, groups.plugin] })
  await bundleClient()
  for (const door of doors) rmSync(`dist/${door}.js.map`, { force: true })
  for (const door of required) writeFileSync(`dist/${door}.cjs`, requiring(door))
}

/** Entries for CommonJS: the same modules, required from within the package, where Node does not warn. */
const required = ['index', 'testing', 'math/index']
const requiring = door => `module.exports = require('./${door.split('/').at(-1)}.js')\n`
