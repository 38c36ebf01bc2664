import { type StageReader } from '../blocks.ts';
/** The messages of gpt-oss, each with a header that tells its channel and recipient. */
export interface Harmony {
    /** Whether calls are read, or passed on as they are. */
    readonly calls: 'read' | 'raw';
    /**
     * Whether text without any structure is kept. The prompt ends within a header, so such text is
     * the rest of a header that never ended.
     */
    readonly bare: 'keep' | 'drop';
}
/** Reads channels: `analysis` is reasoning, a recipient makes a call, everything else is content. */
export declare function harmonyReader({ calls, bare }: Harmony): StageReader;
