PRAGMA application_id=1347699538;
BEGIN TRANSACTION;
CREATE TABLE run_store (version INTEGER NOT NULL) STRICT;
INSERT INTO "run_store" VALUES(2);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, status TEXT NOT NULL, epoch INTEGER NOT NULL, holder TEXT,
    expires INTEGER NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, labels TEXT NOT NULL
) STRICT;
INSERT INTO "runs" VALUES(1,'r1','paused',1,NULL,1796074890414831,1796074860414831,1796074860424178,'{}');
CREATE TABLE steps (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, n INTEGER NOT NULL CHECK (n BETWEEN 0 AND 4294967295),
    at INTEGER NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL
) STRICT;
INSERT INTO "steps" VALUES(4294967297,'r1',1,1796074860414812,'start','{"model":"m","mode":"stateless","input":[{"type":"message","role":"user","content":"go"}],"previous_response_id":null,"conversation_id":null}');
INSERT INTO "steps" VALUES(4294967298,'r1',2,1796074860417484,'sent','{"request":1,"attempt":1,"offered":{"names":["look","note","drop"],"hosted_tool":false}}');
INSERT INTO "steps" VALUES(4294967299,'r1',3,1796074860418125,'received','{"request":1,"response":{"id":"resp_1","object":"response","status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed"},{"type":"function_call","id":"fc_a","call_id":"a","name":"look","arguments":"{\"x\": 1}"},{"type":"function_call","id":"fc_b","call_id":"b","name":"drop","arguments":"{\"x\": 1}"},{"type":"function_call","id":"fc_c","call_id":"c","name":"note","arguments":"{\"x\": 1}"}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}},"programs":null}');
INSERT INTO "steps" VALUES(4294967300,'r1',4,1796074860420350,'contract','{"token":"sha256:67ee3249da52e98ed99abb458b96019f5c5f8940d2fddda6fe7e96af77f494df","contract":{"name":"drop","description":"Drop something.","effects":"write","approval":"always","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"output_schema":{"type":"integer"},"accepted":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"allowed_callers":["direct"]}}');
INSERT INTO "steps" VALUES(4294967301,'r1',5,1796074860420350,'asked','{"request":{"call_id":"b","namespace":null,"name":"drop","arguments":{"x":1},"program":null,"reason":"the tool asks for an approval","requested_us":1796074860420227,"expires_us":null},"contract":"sha256:67ee3249da52e98ed99abb458b96019f5c5f8940d2fddda6fe7e96af77f494df"}');
INSERT INTO "steps" VALUES(4294967302,'r1',6,1796074860421525,'contract','{"token":"sha256:7608c34cc8b3e07e96de6df3300ef6371daafc62328e639e1f5af7ece0474134","contract":{"name":"look","description":"Look.","effects":"read","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"output_schema":{"type":"integer"},"accepted":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"allowed_callers":["direct"]}}');
INSERT INTO "steps" VALUES(4294967303,'r1',7,1796074860421525,'admitted','{"key":"ptc-1df6b817ce26bbe54077c45b0cec44db0105ea9a","attempt":1,"call_id":"a","namespace":null,"name":"look","given":"{\"x\": 1}","arguments":{"x":1},"program":null,"line":null,"request":1,"contract":"sha256:7608c34cc8b3e07e96de6df3300ef6371daafc62328e639e1f5af7ece0474134"}');
INSERT INTO "steps" VALUES(4294967304,'r1',8,1796074860422025,'contract','{"token":"sha256:6770784c6befdbcc89f3d94310a0356d72dac32a04a85432037a6a58f34a1527","contract":{"name":"note","description":"A mutation that is not idempotent.","effects":"write","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"output_schema":{"type":"integer"},"accepted":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"allowed_callers":["direct"]}}');
INSERT INTO "steps" VALUES(4294967305,'r1',9,1796074860422025,'admitted','{"key":"ptc-dfebdfd61bf976a3c5a0d5bd0bb0d864f9d98180","attempt":1,"call_id":"c","namespace":null,"name":"note","given":"{\"x\": 1}","arguments":{"x":1},"program":null,"line":null,"request":1,"contract":"sha256:6770784c6befdbcc89f3d94310a0356d72dac32a04a85432037a6a58f34a1527"}');
INSERT INTO "steps" VALUES(4294967306,'r1',10,1796074860424024,'outcome','{"key":"ptc-1df6b817ce26bbe54077c45b0cec44db0105ea9a","outcome":{"status":"success","value":1},"settled":true}');
INSERT INTO "steps" VALUES(4294967307,'r1',11,1796074860424024,'outcome','{"key":"ptc-dfebdfd61bf976a3c5a0d5bd0bb0d864f9d98180","outcome":{"status":"success","value":3},"settled":true}');
INSERT INTO "steps" VALUES(4294967308,'r1',12,1796074860424024,'answered','{"request":1,"calls":[["a",{"type":"function_call_output","call_id":"a","output":"1"},{"status":"success","value":1}],["c",{"type":"function_call_output","call_id":"c","output":"3"},{"status":"success","value":3}]]}');
INSERT INTO "steps" VALUES(4294967309,'r1',13,1796074860424024,'ended','{"status":"paused"}');
COMMIT;
