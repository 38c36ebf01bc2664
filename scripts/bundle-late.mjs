// Modules that are loaded when the first of their functions is called: zod, which a program that only names
// environments and rewards never calls, and others that take milliseconds. They are loaded synchronously, as
// they are called, so zod's file is CommonJS.
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { build } from 'esbuild'

/** What Espalier calls of zod, besides `z.coerce.number`. */
const zodNames = [
  ...['array', 'base64', 'boolean', 'custom', 'discriminatedUnion', 'enum', 'int', 'json'],
  ...['literal', 'looseObject', 'number', 'object', 'preprocess', 'prettifyError', 'record'],
  ...['strictObject', 'string', 'toJSONSchema', 'union', 'unknown', 'url'],
]

/** What is called of each module. A name that is missing here fails the build. */
const lateModules = {
  zod: zodNames,
  'node:child_process': ['execFileSync', 'spawn', 'spawnSync'],
  'node:crypto': [
    ...['createHash', 'createHmac', 'hash', 'randomBytes', 'randomUUID', 'timingSafeEqual'],
  ],
}

/** Functions with the names of a module's, which load it when one is called. */
function lateFunctions(module, names) {
  const opened = `opened_${module.replace(/\W/g, '_')}`
  const load =
    module === 'zod'
      ? "createRequire(espalierFolder)('./chunks/zod.cjs')"
      : `process.getBuiltinModule('${module}')`
  const open = `(${opened} ??= ${load})`
  const coerce = `export const coerce = { number: (...given) => ${open}.coerce.number(...given) }`
  return [
    `let ${opened}`,
    ...names.map(name => `const ${name}Late = (...given) => ${open}.${name}(...given)`),
    ...(module === 'zod' ? [coerce] : []),
    `export { ${names.map(name => `${name}Late as ${name}`).join(', ')} }`,
  ].join('\n')
}

/** The functions of all modules, in one file. */
const allLate = `import { createRequire } from 'node:module'
import { espalierFolder } from 'espalier:folder'
${Object.entries(lateModules)
  .map(([module, names]) => lateFunctions(module, names))
  .join('\n')}`

/** Puts functions that load a module later in the place of the module. */
export const loadedLater = {
  name: 'loaded-later',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(?:zod|node:.*)$/ }, ({ path, kind }) => {
      // Who loads a module by an expression gets all of it; user code gets our zod so.
      const isLate = kind === 'import-statement' && Object.hasOwn(lateModules, path)
      return isLate ? { path: 'functions', namespace: 'late' } : undefined
    })
    onLoad({ filter: /.*/, namespace: 'late' }, () => ({
      contents: allLate,
      resolveDir: resolve('src'),
    }))
  },
}

/** Messages are in English; the other languages are most of zod's files. */
const english = {
  name: 'english',
  setup({ onLoad }) {
    onLoad({ filter: /zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js'",
    }))
  },
}

/** Writes the file of zod. */
export async function bundleZod() {
  await build({
    stdin: {
      contents: `export { ${['coerce', ...zodNames].join(', ')} } from 'zod'`,
      resolveDir: resolve('.'),
    },
    outfile: 'dist/chunks/zod.cjs',
    bundle: true,
    format: 'cjs',
    platform: 'node',
    // The form of its files that allows tree shaking.
    mainFields: ['module'],
    conditions: ['import'],
    target: 'node20',
    plugins: [english],
    logLevel: 'warning',
  })
  copyFileSync('node_modules/zod/LICENSE', 'dist/chunks/LICENSE-zod')
}

/** undici's client as `policies/transport` requires it: fifty files, with the first connection. */
const clientFile = 'undici/lib/dispatcher/client.js'

/** The path of undici's client in one file, from a file of `dist/`, in the place of its own path. */
export function withJoinedClient(code, file) {
  return code.replace(clientFile, `${'../'.repeat(file.split('/').length - 1)}chunks/undici.cjs`)
}

/** HTTP/2 and the encryption that it loads, a third of the client, wait for a server that speaks it. */
const http2Later = {
  name: 'http2-later',
  setup({ onLoad }) {
    onLoad({ filter: /undici[\\/]lib[\\/]dispatcher[\\/]client\.js$/ }, ({ path }) => {
      const load = "require('./client-h2.js')"
      const code = readFileSync(path, 'utf8')
      if (!code.includes(`= ${load}\n`)) throw new Error(`${path} loads HTTP/2 in another way`)
      return { contents: code.replace(`= ${load}\n`, `= (...given) => ${load}(...given)\n`) }
    })
  },
}

/** Writes the file of undici's client. */
export async function bundleClient() {
  await build({
    entryPoints: [`node_modules/${clientFile}`],
    outfile: 'dist/chunks/undici.cjs',
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    plugins: [http2Later],
    logLevel: 'warning',
  })
  copyFileSync('node_modules/undici/LICENSE', 'dist/chunks/LICENSE-undici')
  const thread = 'policies/transport/thread/built/worker.js'
  writeFileSync(`dist/${thread}`, withJoinedClient(readFileSync(`dist/${thread}`, 'utf8'), thread))
}
