import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { scratch } from './cli.ts'

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
const run = (folder: string, command: string, ...words: readonly string[]): string =>
  execFileSync(command, words, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/** The first TypeScript block of the README. */
function example(): string {
  const blocks = [...readFileSync('README.md', 'utf8').matchAll(/```ts\n([\s\S]*?)```/g)]
  // The one that needs nothing but the package.
  return blocks.map(([, code]) => code!).find(code => code.includes('espalier/testing'))!
}

describe('the package', () => {
  it('installs from its tarball into an empty project, type-checks, runs the README example and is required without a word', () => {
    const folder = scratch()
    run(process.cwd(), npm, 'pack', '--ignore-scripts', '--pack-destination', folder)
    const tarball = readdirSync(folder).find(name => name.endsWith('.tgz'))!
    writeFileSync(
      join(folder, 'package.json'),
      JSON.stringify({ name: 'empty', private: true, type: 'module' }),
    )
    run(
      folder,
      npm,
      'install',
      '--prefer-offline',
      '--no-audit',
      '--no-fund',
      `./${tarball}`,
      'zod@4',
      '@types/node@20',
    )
    writeFileSync(join(folder, 'example.ts'), example())
    const compiler = resolve('node_modules/typescript/bin/tsc')
    const flags = [
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--strict',
      '--skipLibCheck',
      '--rootDir',
      '.',
      '--types',
      'node',
    ]
    run(folder, process.execPath, compiler, ...flags, 'example.ts')
    expect(run(folder, process.execPath, 'example.js')).toMatch(/^1 1 \d+ tokens sampled\n$/)
    const required = "['', '/testing', '/math'].map(door => require('espalier' + door))"
    // Also what Node says on stderr of CommonJS that requires modules.
    const both = [`node -e "${required}; console.log('quiet')" 2>&1`]
    expect(run(folder, 'sh', '-c', ...both)).toBe('quiet\n')
    expect(run(folder, process.execPath, 'node_modules/.bin/espalier', '--version')).toMatch(
      /^\d+\.\d+\.\d+\n$/,
    )
  }, 180_000)

  it('starts nothing and changes no global state when it is imported', () => {
    const program = `
      const look = () => JSON.stringify([
        Object.getOwnPropertyNames(globalThis).sort(),
        ['SIGINT', 'SIGTERM', 'exit', 'uncaughtException'].map(name => process.listenerCount(name)),
      ])
      // zod keeps a registry of its own in the global object.
      await import('zod')
      const before = look()
      await import('espalier')
      await import('espalier/testing')
      await new Promise(resolve => setImmediate(resolve))
      const running = process.getActiveResourcesInfo().filter(name => !/Wrap|Req/.test(name))
      console.log(before === look(), running.join())
    `
    expect(run(process.cwd(), process.execPath, '--input-type=module', '-e', program)).toBe(
      'true \n',
    )
  })
})
