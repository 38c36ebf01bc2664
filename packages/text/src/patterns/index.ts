export { linearPattern } from './pattern.ts'
