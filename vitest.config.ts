import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'viewer/**/*.test.ts'],
    globalSetup: 'test/scratch.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What passing tests print hides what failed.
    silent: 'passed-only',
  },
})
