/** Handles a signal while the event loop runs. */
export declare function onSignal(name: NodeJS.Signals, answer: () => void): void;
/**
 * Call before or during work whose length an outsider decides and that blocks the event loop: loading
 * a tokenizer, a slow template, a huge text. No handler can run meanwhile, so until the loop turns
 * again signals have their default effect: they end the process at once. The run folder is then as
 * after a kill, and can be resumed.
 */
export declare function holdLoop(): void;
