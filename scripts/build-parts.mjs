// Compiles the embedded model's kernels to WASM and bundles the files that threads run.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import asc from 'assemblyscript/asc'
import { build } from 'esbuild'

const source = fileURLToPath(new URL('../src', import.meta.url))
const model = `${source}/model`

/** Each worker and its bundle: beside the sources, since workers cannot load TypeScript. */
const workers = [
  [`${model}/engine/worker.ts`, `${model}/wasm/worker.js`],
  [
    `${source}/policies/transport/thread/worker.ts`,
    `${source}/policies/transport/thread/built/worker.js`,
  ],
]

/** Both kernels are the same source; the second has fused multiply-add where the runtime has it. */
const kernels = { plain: [], 'relaxed-fma': ['--enable', 'relaxed-simd'] }

const options = [
  ...['-O3', '--converge', '--noAssert', '--runtime', 'stub'],
  ...['--enable', 'simd', '--enable', 'threads'],
  ...['--importMemory', '--sharedMemory', '--initialMemory', '1', '--maximumMemory', '65536'],
]

/** Files appear whole: a test that runs meanwhile must not load half of one. */
function write(file, content) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.part`, content)
  renameSync(`${file}.part`, file)
}

async function compile(name, flags) {
  const outputs = new Map()
  const { error, stdout, stderr } = await asc.main(
    ['index.ts', '--baseDir', `${model}/kernels`, '-o', 'kernel.wasm', ...options, ...flags],
    { writeFile: (file, content) => void outputs.set(file, content) },
  )
  if (error) {
    process.stderr.write(`${stdout}${stderr}`)
    throw error
  }
  const bytes = outputs.get('kernel.wasm')
  // Static data would be written again by every thread that starts, over memory others use.
  if (hasData(bytes)) throw new Error(`The kernel ${name} has static data; it may have none.`)
  write(`${model}/wasm/${name}.wasm`, bytes)
}

/** Whether a WASM binary has a data section (number 11). */
function hasData(bytes) {
  let at = 8
  while (at < bytes.length) {
    const section = bytes[at++]
    let size = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]
      size |= (byte & 127) << shift
      if (byte < 128) break
    }
    if (section === 11) return true
    at += size
  }
  return false
}

async function bundle(entry, file) {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    packages: 'external',
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  })
  write(file, outputFiles[0].contents)
}

for (const [entry, file] of workers) await bundle(entry, file)
for (const [name, flags] of Object.entries(kernels)) await compile(name, flags)
