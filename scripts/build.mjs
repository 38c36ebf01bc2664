// Builds `dist/`: the WASM kernels, compiled JavaScript and declarations.
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, rmSync, symlinkSync } from 'node:fs'

function run(command, ...words) {
  const { status } = spawnSync(process.execPath, [`node_modules/${command}`, ...words], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}

if (existsSync('scripts/build-kernels.mjs')) await import('./build-kernels.mjs')
rmSync('dist', { recursive: true, force: true })
run('typescript/bin/tsc', '-p', 'tsconfig.build.json')
if (existsSync('src/model/wasm')) cpSync('src/model/wasm', 'dist/model/wasm', { recursive: true })

// So that `npx --no-install espalier` runs the checkout's own program.
if (existsSync('node_modules/.bin') && process.platform !== 'win32') {
  chmodSync('dist/cli/main.js', 0o755)
  rmSync('node_modules/.bin/espalier', { force: true })
  symlinkSync('../../dist/cli/main.js', 'node_modules/.bin/espalier')
}
