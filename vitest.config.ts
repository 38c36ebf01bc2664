import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const text = fileURLToPath(new URL('packages/text/src', import.meta.url))

export default defineConfig({
  resolve: {
    // The package beside this one is tested as it is written, not as it was built.
    alias: [
      { find: /^@espalier\/text$/, replacement: `${text}/index.ts` },
      { find: /^@espalier\/text\/(\w+)$/, replacement: `${text}/$1/index.ts` },
    ],
  },
  test: {
    include: [
      'src/**/*.test.ts',
      'packages/*/src/**/*.test.ts',
      'test/**/*.test.ts',
      'viewer/**/*.test.ts',
    ],
    globalSetup: 'test/scratch.ts',
    setupFiles: 'src/offers.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What passing tests print hides what failed.
    silent: 'passed-only',
  },
})
