// Modules that are loaded when the first of their functions is called: zod, which a program that only names
// environments and rewards never calls, and modules of Node that take milliseconds. They are loaded
// synchronously, as they are called. zod is there as a text: bundles of others take it along, and Node only
// reads over it until it is needed.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { build } from 'esbuild'
import { z } from 'zod'

/** What Espalier calls of zod itself, found in the sources. */
const zodNames = findZodNames()

function findZodNames() {
  const files = readdirSync('src', { recursive: true }).filter(file => file.endsWith('.ts'))
  const calls = files.flatMap(file => [
    ...readFileSync(`src/${file}`, 'utf8').matchAll(/\bz\s*\.([a-z]\w*)/g),
  ])
  const names = new Set(calls.map(([, name]) => name))
  return [...names].filter(name => typeof z[name] === 'function')
}

/** What it calls of zod's objects. One that is missing here fails the build. */
const zodObjects = { coerce: ['number'], globalRegistry: ['get'] }

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
  const load = module === 'zod' ? 'openZod()' : `process.getBuiltinModule('${module}')`
  const open = `(${opened} ??= ${load})`
  const call = name => `(...given) => ${open}.${name}(...given)`
  const objects = Object.entries(module === 'zod' ? zodObjects : {}).map(([object, methods]) => {
    const calls = methods.map(name => `${name}: ${call(`${object}.${name}`)}`)
    return `export const ${object} = { ${calls.join(', ')} }`
  })
  return [
    `let ${opened}`,
    ...names.map(name => `const ${name}Late = ${call(name)}`),
    ...objects,
    `export { ${names.map(name => `${name}Late as ${name}`).join(', ')} }`,
  ].join('\n')
}

/** The functions of all modules, in one file. */
function allLate(zodCode) {
  const functions = Object.entries(lateModules).map(entry => lateFunctions(...entry))
  return `import { compileFunction } from 'node:vm'
const zodCode = ${JSON.stringify(zodCode)}
function openZod() {
  const module = { exports: {} }
  compileFunction(zodCode, ['module', 'exports'], { filename: 'zod' })(module, module.exports)
  return module.exports
}
${functions.join('\n')}`
}

/** Puts functions that load a module later in the place of the module. */
export const loadedLater = {
  name: 'loaded-later',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(?:zod|node:.*)$/ }, ({ path, kind }) => {
      // Who loads a module by an expression gets all of it; user code gets our zod so.
      const isLate = kind === 'import-statement' && Object.hasOwn(lateModules, path)
      return isLate ? { path: 'functions', namespace: 'late' } : undefined
    })
    const zodCode = joinZod()
    onLoad({ filter: /.*/, namespace: 'late' }, async () => ({ contents: allLate(await zodCode) }))
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

/** The part of zod that is used, as the text of one CommonJS file. */
async function joinZod() {
  const { outputFiles } = await build({
    stdin: {
      contents: `export { ${[...Object.keys(zodObjects), ...zodNames].join(', ')} } from 'zod'`,
      resolveDir: resolve('.'),
    },
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    // The form of its files that allows tree shaking.
    mainFields: ['module'],
    conditions: ['import'],
    target: 'node20',
    plugins: [english],
    logLevel: 'warning',
  })
  return outputFiles[0].text
}

/** undici's client as `policies/transport` requires it: fifty files, with the first connection. */
const clientFile = 'undici/lib/dispatcher/client.js'

/**
 * A file of `dist/` that requires undici's client, changed to require the one file of it. Bundles of others, which
 * may be without that file, find the package.
 */
export function withJoinedClient(code, file) {
  const path = `${'../'.repeat(file.split('/').length - 1)}chunks/undici.cjs`
  return code.replace(
    /(createRequire\(import\.meta\.url\))\((["'])(undici\/lib\/dispatcher\/client\.js)\2\)/,
    `(require => { try { return require('${path}') } catch { return require('$3') } })($1)`,
  )
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

/** Writes the file of undici's client, and the licences of what is built in. */
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
  copyFileSync('node_modules/zod/LICENSE', 'dist/chunks/LICENSE-zod')
  const thread = 'policies/transport/thread/built/worker.js'
  writeFileSync(`dist/${thread}`, withJoinedClient(readFileSync(`dist/${thread}`, 'utf8'), thread))
}
