import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type BuildOptions, buildSync } from 'esbuild'

/**
 * Packs the package, installs it into projects of the kinds that people have, and checks that each
 * type-checks, bundles and runs without a word on stderr; `git` installs the last commit from the checkout's
 * git folder, which builds it anew and takes minutes. Needs the registry, so it is no test:
 * `npm run package-check [-- NAME]`, after `npm run build`.
 */
const folder = mkdtempSync(join(tmpdir(), 'espalier-package-'))
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

interface Ended {
  readonly stdout: string
  readonly stderr: string
}

function run(cwd: string, command: string, ...words: readonly string[]): Ended {
  const errors = join(folder, 'stderr')
  const quoted = [command, ...words].map(word => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
  try {
    const stdout = execFileSync('sh', ['-c', `${quoted} 2>'${errors}'`], { cwd, encoding: 'utf8' })
    return { stdout, stderr: execFileSync('cat', [errors], { encoding: 'utf8' }) }
  } catch (error) {
    const { stdout = '' } = error as { readonly stdout?: string }
    const stderr = execFileSync('cat', [errors], { encoding: 'utf8' })
    throw new Error(`${quoted}\n${`${stdout}${stderr}`.trim().slice(0, 1500)}`)
  }
}

/** What a project of any kind does with the package: everything typed, one group rolled. */
const program = `import { environment, roll, tool } from 'espalier'
import { grpoAdvantages } from 'espalier/math'
import { scripted } from 'espalier/testing'
import { z } from 'zod'

const shop = environment({
  name: 'shop',
  task: z.object({ stock: z.number() }),
  open: ({ data }) => {
    let left = data.stock
    const sell = tool({ inputSchema: z.object({ pears: z.number() }), execute: ({ pears }) => (left -= pears) })
    return { opening: [{ role: 'user', content: 'Sell one.' }], tools: { sell }, report: () => ({ left }) }
  },
  reward: { right: ({ task, report }) => Number(report.left === task.data.stock) },
})

export async function main() {
  const policy = await scripted(['no'])
  for await (const { members } of roll(shop, [{ stock: 3 }], { policy, group: 2 })) {
    console.log(members.map(member => member.reward.total).join(' '), typeof grpoAdvantages)
  }
}
`
const printed = '1 1 function\n'
const dynamic = `async function main() {
  const { roll } = await import('espalier')
  const { calculator } = await import('espalier/environments')
  const { scripted } = await import('espalier/testing')
  const policy = await scripted(['2'])
  for await (const { members } of roll(calculator(), [{ prompt: '1+1?', answer: '2' }], { policy, group: 2 })) {
    console.log(members.map(member => member.reward.total).join(' '), 'function')
  }
}
void main()
`

function expectQuiet({ stdout, stderr }: Ended): void {
  if (stdout !== printed) throw new Error(`it printed ${JSON.stringify(stdout)}`)
  if (stderr !== '') throw new Error(`stderr: ${stderr.slice(0, 400)}`)
}

/** A project with the package as it came from somewhere. */
function projectOf(name: string, type: 'module' | 'commonjs', source: string): string {
  const at = join(folder, name)
  mkdirSync(at)
  writeFileSync(join(at, 'package.json'), JSON.stringify({ name, private: true, type }))
  const packages = [source, 'zod@4', '@types/node@20']
  run(at, npm, 'install', '--prefer-offline', '--no-audit', '--no-fund', ...packages)
  writeFileSync(join(at, 'program.ts'), program)
  writeFileSync(join(at, 'main.ts'), "import { main } from './program.js'\nawait main()\n")
  writeFileSync(join(at, 'dynamic.ts'), dynamic)
  return at
}

const compilers = ['5.4.5', '5.8.3', '5.9.3', 'latest'] as const

function compilerOf(version: string): string {
  const at = join(folder, `typescript-${version}`)
  mkdirSync(at)
  writeFileSync(join(at, 'package.json'), '{"private":true}')
  run(at, npm, 'install', '--prefer-offline', '--no-audit', '--no-fund', `typescript@${version}`)
  return join(at, 'node_modules', 'typescript', 'bin', 'tsc')
}

function compile(at: string, compiler: string, file: string, ...flags: readonly string[]): void {
  const common = ['--target', 'es2022', '--lib', 'es2023', '--strict', '--types', 'node']
  run(at, process.execPath, compiler, ...common, '--rootDir', '.', ...flags, file)
}

function typeChecks(version: string): void {
  const compiler = compilerOf(version)
  const [esm, cjs] = [join(folder, 'esm'), join(folder, 'cjs')]
  for (const resolution of ['node16', 'nodenext']) {
    compile(esm, compiler, 'main.ts', '--module', resolution)
    expectQuiet(run(esm, process.execPath, 'main.js'))
    compile(cjs, compiler, 'dynamic.ts', '--module', resolution)
    expectQuiet(run(cjs, process.execPath, 'dynamic.js'))
  }
  const bundler = ['--module', 'esnext', '--moduleResolution', 'bundler']
  compile(esm, compiler, 'main.ts', ...bundler, '--noEmit')
  // TypeScript supports a static import of an ES module from CommonJS from 5.8 on.
  if (version.startsWith('5.4')) return
  compile(cjs, compiler, 'program.ts', '--module', 'nodenext', '--outDir', 'required')
  expectQuiet(run(cjs, process.execPath, '-e', "require('./required/program.js').main()"))
}

/** Bundles a file of a project with esbuild, and runs what came out. */
function bundled(at: string, entry: string, outfile: string, options: BuildOptions): void {
  const common = { bundle: true, platform: 'node', logLevel: 'error' } as const
  buildSync({ absWorkingDir: at, entryPoints: [entry], outfile, ...common, ...options })
  const start = options.format === 'cjs' ? ['-e', `require('./${outfile}').main()`] : [outfile]
  expectQuiet(run(at, process.execPath, ...start))
}

function withEsbuild(): void {
  bundled(join(folder, 'esm'), 'main.ts', 'lean.mjs', { format: 'esm', packages: 'external' })
}

/** Everything bundled into one file; files that are not code are found where Espalier is installed. */
function withOneFile(): void {
  bundled(join(folder, 'esm'), 'main.ts', 'one.mjs', { format: 'esm' })
  bundled(join(folder, 'esm'), 'program.ts', 'one.cjs', { format: 'cjs' })
}

/** `require` loads all three entries synchronously, and Node prints no warning. */
function withRequire(): void {
  const start = `const { roll } = require('espalier')
    const { scripted } = require('espalier/testing')
    console.log('1 1', typeof roll && typeof scripted && typeof require('espalier/math').grpoAdvantages)`
  expectQuiet(run(join(folder, 'cjs'), process.execPath, '-e', start))
}

/** Installed by its git address, the package is built where nobody has built it before. */
function fromGit(): void {
  const at = projectOf('git', 'module', `git+file://${resolve('.')}#HEAD`)
  bundled(at, 'main.ts', 'lean.mjs', { format: 'esm', packages: 'external' })
  const { stdout } = run(at, npm, 'exec', '--', 'espalier', '--version')
  if (!/^\d+\.\d+\.\d+\n$/.test(stdout)) throw new Error(stdout)
}

function withVite(): void {
  const esm = join(folder, 'esm')
  const vite = resolve('node_modules/vite/bin/vite.js')
  run(esm, process.execPath, vite, 'build', '--ssr', 'main.ts', '--outDir', 'vite', '-l', 'error')
  expectQuiet(run(esm, process.execPath, 'vite/main.js'))
}

function theProgram(): void {
  const { stdout, stderr } = run(join(folder, 'cjs'), npm, 'exec', '--', 'espalier', '--version')
  if (!/^\d+\.\d+\.\d+\n$/.test(stdout) || /Warning/.test(stderr)) throw new Error(stdout + stderr)
}

const checks: Readonly<Record<string, () => void>> = {
  ...Object.fromEntries(
    compilers.map(version => [`typescript-${version}`, () => typeChecks(version)]),
  ),
  require: withRequire,
  esbuild: withEsbuild,
  'one-file': withOneFile,
  vite: withVite,
  program: theProgram,
  git: fromGit,
}

run(process.cwd(), process.execPath, 'scripts/build.mjs', '--if-changed')
run(process.cwd(), npm, 'pack', '--ignore-scripts', '--pack-destination', folder)
const tarball = readdirSync(folder).find(name => name.endsWith('.tgz'))!
projectOf('esm', 'module', join(folder, tarball))
projectOf('cjs', 'commonjs', join(folder, tarball))
const wanted = process.argv[2]
for (const [name, check] of Object.entries(checks)) {
  if (wanted !== undefined && !name.startsWith(wanted)) continue
  try {
    check()
    console.log(`passed  ${name}`)
  } catch (error) {
    process.exitCode = 1
    console.log(`FAILED  ${name}\n${(error as Error).message}`)
  }
}
if (process.exitCode !== 1) rmSync(folder, { recursive: true })
else console.log(`the projects are in ${folder}`)
