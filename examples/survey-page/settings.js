// What this page asks, and whom it trusts. Change these five lines.

export const question = "What did you drink this morning?";
export const collector = "http://127.0.0.1:8321"; // where the collector is reached; https anywhere but on this machine
export const key = "PASTE-THE-PUBLIC-KEY-OF-YOUR-COLLECTOR"; // it signs surveys; no other survey is answered
export const task = "PASTE-THE-TASK-ID-OF-YOUR-SURVEY"; // it names the survey and everything in it
export const budget = { lifetime: 2 }; // what a person grants to all surveys of this site together, as epsilon
