// Compiles the embedded model's kernels to WASM.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import asc from 'assemblyscript/asc'

const source = 'src/learn/model/kernels'
const target = 'dist/learn/model/wasm'

/** Both kernels are the same source; the second has fused multiply-add where the runtime has it. */
const kernels = { plain: [], 'relaxed-fma': ['--enable', 'relaxed-simd'] }

const options = [
  ...['-O3', '--converge', '--noAssert', '--runtime', 'stub'],
  ...['--enable', 'simd', '--enable', 'threads'],
  ...['--importMemory', '--sharedMemory', '--initialMemory', '1', '--maximumMemory', '65536'],
]

async function compile(name, flags) {
  const outputs = new Map()
  const { error, stdout, stderr } = await asc.main(
    ['index.ts', '--baseDir', source, '-o', 'kernel.wasm', ...options, ...flags],
    { writeFile: (file, content) => void outputs.set(file, content) },
  )
  if (error) {
    process.stderr.write(`${stdout}${stderr}`)
    throw error
  }
  const bytes = outputs.get('kernel.wasm')
  // Static data would be written again by every thread that starts, over memory others use.
  if (hasData(bytes)) throw new Error(`The kernel ${name} has static data; it may have none.`)
  writeFileSync(`${target}/${name}.wasm.part`, bytes)
  renameSync(`${target}/${name}.wasm.part`, `${target}/${name}.wasm`)
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

/** Writes both kernels into `dist/`. */
export async function buildKernels() {
  mkdirSync(target, { recursive: true })
  for (const [name, flags] of Object.entries(kernels)) await compile(name, flags)
}
